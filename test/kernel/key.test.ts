import fc from 'fast-check';
import { expect, it } from 'vitest';
import { businessKey, parseKey } from '../../src/kernel/key.ts';

const job = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/);
const period = fc.constantFrom('2026', '2026-09', '2026-W39', '2026-09-30', '2026-09-30T14', 'FY2027', 'FY2027-P03');
const adj = fc.option(fc.integer({ min: 1, max: 9999 }).map(String), { nil: null });

it('writes job and period, and the number of an adjustment after them', () => {
  expect(businessKey('settlement', '2026-09')).toBe('settlement:2026-09');
  expect(businessKey('settlement', '2026-09', null)).toBe('settlement:2026-09');
  expect(businessKey('settlement', '2026-09', '1')).toBe('settlement:2026-09:adj-1');
});

it('gives every key back, taken apart', () => {
  fc.assert(
    fc.property(job, period, adj, (aJob, aPeriod, anAdj) => {
      const parts = { job: aJob, period: aPeriod, adj: anAdj };
      expect(parseKey(businessKey(aJob, aPeriod, anAdj))).toEqual(parts);
    }),
  );
});

it('gives different parts different keys', () => {
  const parts = fc.tuple(job, period, adj);
  fc.assert(
    fc.property(parts, parts, (a, b) => {
      expect(businessKey(...a) === businessKey(...b)).toBe(JSON.stringify(a) === JSON.stringify(b));
    }),
  );
});

it.each([
  'settlement',
  '',
  'settlement:',
  ':2026-09',
  'Settlement:2026-09',
  '9settlement:2026-09',
  'settle_ment:2026-09',
  'settlement:2026-9',
  'settlement:2026-09-',
  'settlement:0206-09',
  'settlement:2026-09:retry1',
  'settlement:2026-09:adj-',
  'settlement:2026-09:adj-0',
  'settlement:2026-09:adj-01',
  'settlement:2026-09:adj-1:2',
  'settlement:2026-09:m-1001:GBP:payout',
  ' settlement:2026-09',
  'settlement:2026-09\n',
])('refuses %j', (text) => {
  expect(() => parseKey(text)).toThrow(expect.objectContaining({ code: 'malformed_key', at: text }));
});

it.each([
  ['settlement', '2026-09', 'retry'],
  ['settlement', '2026-09', ''],
  ['settlement', 'September', null],
  ['settle:ment', '2026-09', null],
] as const)('makes no key of %j, %j, %j', (aJob, aPeriod, anAdj) => {
  expect(() => businessKey(aJob, aPeriod, anAdj)).toThrow(expect.objectContaining({ code: 'malformed_key' }));
});
