import { expect, test } from 'vitest';
import { retryAfterMs } from '../../src/gateway/retry-after.ts';

const now = Date.parse('2026-11-30T12:00:00Z');

test.each([
  ['seconds', '7', undefined, 7_000],
  [
    'an HTTP date, against the clock of its own answer',
    'Mon, 30 Nov 2026 13:00:20 GMT',
    'Mon, 30 Nov 2026 13:00:00 GMT',
    20_000,
  ],
  ['an HTTP date without a Date beside it, against ours', 'Mon, 30 Nov 2026 12:00:05 GMT', undefined, 5_000],
  ['a date that has passed', 'Mon, 30 Nov 2026 11:00:00 GMT', undefined, 0],
  ['more than an hour, as an hour', '86400', undefined, 3_600_000],
  ['nothing', undefined, undefined, 0],
  ['what is neither', 'soon', undefined, 0],
])('Retry-After is read as %s', (_sentence, header, date, expected) => {
  expect(retryAfterMs(header, date, now)).toBe(expected);
});
