import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { canonicalName, derivedSubjectId, statedSubjectId } from '../../src/kernel/subject.ts';

const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

it.each([
  ['  AMAZON   EU\tSARL ', 'amazon eu sarl'],
  ['Cafe\u0301', 'café'],
  ['CAFÉ', 'café'],
  ['Ltd\u00a0&\u2003Co\u0085', 'ltd & co'],
  ['IKEA', 'ikea'],
  // Composed only in lower case.
  ['J\u030c', '\u01f0'],
  ['ΟΔΟΣ', 'οδος'],
])('writes %j canonically as %j', (name, canonical) => {
  expect(canonicalName(name)).toBe(canonical);
});

it('changes nothing when applied twice', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      const once = canonicalName(name);
      expect(canonicalName(once)).toBe(once);
    }),
    { numRuns: 2000 },
  );
});

it('leaves the line feed, which separates source and name, in no name', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      expect(canonicalName(`${name}\n${name}`)).not.toContain('\n');
    }),
  );
});

it('keeps the id that a source states', () => {
  expect(statedSubjectId('m-1001')).toBe('m-1001');
  expect(statedSubjectId('7')).toBe('7');
});

it.each(['', 'M-1001', 'm 1001', 'm_1001', 'm:1001', 'é', ' m-1', 'm-1\n'])('refuses the stated id %j', (id) => {
  expect(() => statedSubjectId(id)).toThrow(expect.objectContaining({ code: 'malformed_subject', at: id }));
});

it('derives m- and 20 hex digits from source and canonical name, the same for good', () => {
  // Computed with: printf 'birmingham-cards\namazon eu' | sha256sum
  expect(derivedSubjectId('birmingham-cards', 'amazon eu', sha256)).toBe('m-1387f30f251fc24152dd');
});

it('derives one id for every spelling of a name, and another for another source', () => {
  const id = derivedSubjectId('birmingham-cards', 'Café  Zoë', sha256);
  expect(derivedSubjectId('birmingham-cards', ' CAFE\u0301 ZOË ', sha256)).toBe(id);
  expect(derivedSubjectId('other-cards', 'Café Zoë', sha256)).not.toBe(id);
});

it('hashes a text that tells where the source ends', () => {
  const hashed: string[] = [];
  const spy = (text: string): string => {
    hashed.push(text);
    return sha256(text);
  };
  derivedSubjectId('a', 'b c', spy);
  derivedSubjectId('a-b', 'c', spy);
  expect(hashed).toEqual(['a\nb c', 'a-b\nc']);
});

it('derives ids that are stated ids in form', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (name) => {
      fc.pre(canonicalName(name) !== '');
      const id = derivedSubjectId('source', name, sha256);
      expect(statedSubjectId(id)).toBe(id);
      expect(id).toMatch(/^m-[0-9a-f]{20}$/);
    }),
  );
});

it.each([
  ['source', ' \t\u00a0'],
  ['Source', 'name'],
  ['so\nurce', 'name'],
  ['', 'name'],
])('derives nothing from source %j and name %j', (source, name) => {
  expect(() => derivedSubjectId(source, name, sha256)).toThrow(expect.objectContaining({ code: 'malformed_subject' }));
});

it('refuses a hash that is not SHA-256 in lower case hex', () => {
  const upper = (text: string): string => sha256(text).toUpperCase();
  expect(() => derivedSubjectId('source', 'name', upper)).toThrow(
    expect.objectContaining({ code: 'malformed_subject' }),
  );
});

it('keeps the name, which may be personal data, out of the error', () => {
  const failing = (): unknown => derivedSubjectId('Source', 'Jane Doe', sha256);
  expect(failing).toThrow(expect.objectContaining({ message: expect.not.stringContaining('Jane'), at: 'Source' }));
});
