import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Horizons, longestTryingMs, retentionFault } from '../../src/kernel/retention.ts';

const horizons = {
  catchUpDays: 400,
  namespaceDays: 30,
  latenessDays: 90,
  retryDays: 2,
  messageDays: 4,
  webhookDays: 30,
};

test('keys that are kept for good outlive whoever may ask for them', () => {
  expect(retentionFault(null, { ...horizons, latenessDays: null })).toBeNull();
});

test('a job without a lateness limit may ask for any key, so none may be forgotten', () => {
  expect(retentionFault(100_000, { ...horizons, latenessDays: null })).toContain('sets no lateness');
});

test('keys must be kept at least as long as the longest of all who may ask for them, which is named', () => {
  const days = fc.nat(1_000);
  const any = fc.record({
    catchUpDays: days,
    namespaceDays: days,
    latenessDays: days,
    retryDays: days,
    messageDays: days,
    webhookDays: days,
  });
  fc.assert(
    fc.property(days, any, (keep, terms: Horizons) => {
      const longest = Math.max(...Object.values(terms as unknown as Record<string, number>));
      const fault = retentionFault(keep, terms);
      expect(fault === null).toBe(keep >= longest);
      if (fault !== null) expect(fault).toMatch(new RegExp(` may ask for one for ${longest}$`));
    }),
  );
});

test('a budget lasts until tries and time are spent, and the look-ups after them', () => {
  expect(longestTryingMs({ tries: 2, timeMs: 10_000, lookUps: 0 }, 1_000)).toBe(11_000);
  expect(longestTryingMs({ tries: 20, timeMs: 10_000, lookUps: 3 }, 1_000)).toBe(23_000);
});
