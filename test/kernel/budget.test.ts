import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EndedAttempt, judgeBudget } from '../../src/kernel/budget.ts';

const failed: EndedAttempt = { outcome: 'failed', code: null, slicesBegun: 1, slicesFinished: 0 };
const progressed: EndedAttempt = { outcome: 'failed', code: null, slicesBegun: 2, slicesFinished: 1 };
const lost: EndedAttempt = { outcome: 'worker_lost', code: null, slicesBegun: 1, slicesFinished: 0 };

test('as many attempts in a row without a finished slice as the budget allows exhaust it', () => {
  expect(judgeBudget([failed, failed], 3).kind).toBe('again');
  expect(judgeBudget([failed, failed, failed], 3)).toEqual({ kind: 'exhausted', spent: 3 });
});

test('an attempt that finished a slice begins the count anew', () => {
  expect(judgeBudget([failed, failed, progressed, failed], 3)).toMatchObject({ kind: 'again', spent: 1 });
});

test('losing workers, deploys and leases before the first slice never exhausts a budget and is not backed off', () => {
  const free = fc.constantFrom<EndedAttempt>(
    lost,
    { outcome: 'shutdown', code: null, slicesBegun: 3, slicesFinished: 0 },
    { outcome: 'superseded', code: null, slicesBegun: 0, slicesFinished: 0 },
    { outcome: 'lease_expired', code: null, slicesBegun: 0, slicesFinished: 0 },
    { outcome: 'lease_lost', code: null, slicesBegun: 0, slicesFinished: 0 },
  );
  fc.assert(
    fc.property(fc.array(free, { minLength: 1, maxLength: 50 }), (attempts) => {
      expect(judgeBudget(attempts, 1)).toEqual({ kind: 'again', afterMs: 0, spent: 0 });
    }),
  );
});

test('a lease lost after a slice began counts like a failure', () => {
  expect(judgeBudget([{ outcome: 'lease_lost', code: null, slicesBegun: 1, slicesFinished: 0 }], 1).kind).toBe(
    'exhausted',
  );
});

test('the wait doubles from a second to half a minute', () => {
  const waits = [1, 2, 3, 4, 5, 6, 7].map((n) => judgeBudget(Array<EndedAttempt>(n).fill(failed), 99));
  expect(waits.map((after) => (after.kind === 'again' ? after.afterMs : null))).toEqual([
    1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
  ]);
});

test('conflicts with other transactions never exhaust a budget, and wait ever longer; a failure between them counts as one', () => {
  const conflict = (code: string): EndedAttempt => ({ ...failed, code });
  const conflicts = Array.from({ length: 20 }, (_, at) => conflict(at % 2 === 0 ? 'serialization' : 'deadlock'));
  expect(judgeBudget(conflicts.slice(0, 1), 1)).toEqual({ kind: 'again', afterMs: 1_000, spent: 0 });
  expect(judgeBudget(conflicts.slice(0, 4), 5)).toEqual({ kind: 'again', afterMs: 8_000, spent: 0 });
  expect(judgeBudget(conflicts, 1)).toEqual({ kind: 'again', afterMs: 30_000, spent: 0 });
  expect(judgeBudget([...conflicts, failed, conflict('deadlock')], 5)).toEqual({
    kind: 'again',
    afterMs: 1_000,
    spent: 1,
  });
});
