import fc from 'fast-check';
import { expect, test } from 'vitest';
import { retentionFault } from '../../src/kernel/retention.ts';

const horizons = { catchUpDays: 400, namespaceDays: 30, latenessDays: 90 };

test('keys that are kept for good outlive whoever may ask for them', () => {
  expect(retentionFault(null, { ...horizons, latenessDays: null })).toBeNull();
});

test('a job without a lateness limit may ask for any key, so none may be forgotten', () => {
  expect(retentionFault(100_000, { ...horizons, latenessDays: null })).toContain('sets no lateness');
});

test('keys must be kept at least as long as the longest of catch-up, namespace and lateness', () => {
  fc.assert(
    fc.property(
      fc.nat(1_000),
      fc.nat(1_000),
      fc.nat(1_000),
      fc.nat(1_000),
      (keep, catchUpDays, namespaceDays, latenessDays) => {
        const fault = retentionFault(keep, { catchUpDays, namespaceDays, latenessDays });
        expect(fault === null).toBe(keep >= Math.max(catchUpDays, namespaceDays, latenessDays));
      },
    ),
  );
});
