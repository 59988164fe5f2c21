import fc from 'fast-check';
import { expect, test } from 'vitest';
import { quoteNumericIds } from '../../src/gateway/numeric-ids.ts';

test('an id that is a whole number keeps its digits, however many', () => {
  const digits = '9'.repeat(400);
  for (const text of ['9007199254740993', '0', digits]) {
    expect(quoteNumericIds(`{"id": ${text}}`)).toBe(`{"id": "${text}"}`);
    expect(quoteNumericIds(`[{"destination"\n:${text} , "reference":${text}}]`)).toBe(
      `[{"destination"\n:"${text}" , "reference":"${text}"}]`,
    );
  }
});

test.each([
  '{"amount":12345}',
  '{"id":1.5}',
  '{"id":1e3}',
  '{"id":-7}',
  '{"id":"12"}',
  '{"note":"\\"id\\":12,"}',
  '{"note":"a \\\\","x":"id","y":12}',
  '{"id":12',
  '{"id:12}',
  '{"a":"x"id":5}',
])('%s stays as it is', (text) => {
  expect(quoteNumericIds(text)).toBe(text);
});

const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom('id', '"id":1,', '\\', '{"id":2}'),
    fc.string(),
    fc.maxSafeNat(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constant(null),
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom('id', 'reference', 'amount', 'x"id'), tie('any'), { maxKeys: 4 }),
  ),
})).any;

/** What the text means when every whole number under a naming part is taken as text. */
function expected(stated: unknown, name = ''): unknown {
  if (Array.isArray(stated)) return stated.map((part) => expected(part));
  if (typeof stated === 'object' && stated !== null)
    return Object.fromEntries(Object.entries(stated).map(([key, part]) => [key, expected(part, key)]));
  const isWhole = typeof stated === 'number' && /^\d+$/.test(JSON.stringify(stated));
  return isWhole && ['id', 'reference'].includes(name) ? JSON.stringify(stated) : stated;
}

test('nothing else of any JSON is touched, whatever stands in its strings', () => {
  fc.assert(
    fc.property(value, fc.constantFrom(undefined, 1), (stated, indent) => {
      const text = JSON.stringify(stated, null, indent);
      expect(JSON.parse(quoteNumericIds(text))).toEqual(expected(JSON.parse(text)));
    }),
    { numRuns: 2_000 },
  );
});

test('sixteen megabytes of quotes and backslashes cost no more than reading them', () => {
  const hostile = `{"id":1,"note":"${'\\"'.repeat(8 * 1_024 * 1_024)}"}`;
  expect(quoteNumericIds(hostile)).toBe(hostile.replace('1', '"1"'));
});
