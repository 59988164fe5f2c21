import fc from 'fast-check';
import { expect, test } from 'vitest';
import { askAgainAfter, decideExisting, decideNew, type Inspection, type Waiver } from '../../src/kernel/admission.ts';
import { ACTION_LIFE, type ActionState } from '../../src/kernel/transitions.ts';

const usual = { late: false, limit: null };
const ready: Inspection = { kind: 'ready' };
const held = (code: string): Inspection => ({ kind: 'held', code, reason: code });
const waits = { needed: true, period: '2026-08', done: false };
const free = { needed: true, period: '2026-08', done: true };
const CODES = ['late', 'empty', 'no_fee_rule', 'exhausted', 'cancelled'];
/** Waivers of everything that can be waived, of a key without an action and of one under fence 3. */
const signed: readonly Waiver[] = CODES.flatMap((code) => [0n, 3n].map((fence) => ({ code, fence })));
const unsigned: readonly Waiver[] = [];
const action = (state: ActionState, overrides = {}) => ({ state, fence: 3n, ownerRun: 'r', overrides });

test.each<[ActionState, string]>([
  ['done', 'duplicate'],
  ['compensating', 'duplicate'],
  ['compensated', 'duplicate'],
  ['admitted', 'in_progress'],
  ['running', 'in_progress'],
  ['failed', 'in_progress'],
  ['exhausted', 'held'],
  ['cancelled', 'held'],
  ['skipped', 'refused'],
])('a run that meets a key which is %s is answered %s', (state, decision) => {
  expect(decideExisting(action(state), {}, unsigned).decision).toBe(decision);
});

test('a release lifts only exhausted and cancelled', () => {
  const states = Object.keys(ACTION_LIFE) as ActionState[];
  const admitted = states.filter((state) => decideExisting(action(state), {}, signed).decision === 'admitted');
  expect(admitted.sort()).toEqual(['cancelled', 'exhausted']);
});

test('a waiver lifts what it names and no other reason to hold', () => {
  const both = { predecessor: free, inspection: held('empty'), late: true, limit: null };
  expect(decideNew(both, [{ code: 'late', fence: 0n }])).toMatchObject({ decision: 'held', code: 'empty' });
  expect(decideNew(both, [{ code: 'empty', fence: 0n }])).toMatchObject({ decision: 'held', code: 'late' });
  const late = [{ code: 'late', fence: 0n }];
  expect(decideExisting(action('cancelled'), {}, late)).toMatchObject({ decision: 'held', code: 'cancelled' });
});

test('a waiver is of the fence that the key had: one granted again and stopped again is held again', () => {
  expect(decideExisting(action('cancelled'), {}, [{ code: 'cancelled', fence: 2n }]).decision).toBe('held');
  expect(decideExisting(action('cancelled'), {}, [{ code: 'exhausted', fence: 3n }]).decision).toBe('held');
  expect(decideExisting(action('cancelled'), {}, [{ code: 'cancelled', fence: 3n }]).decision).toBe('admitted');
});

test('an override that differs from what was settled is a conflict in every state but the final skip', () => {
  const states = (Object.keys(ACTION_LIFE) as ActionState[]).filter((state) => state !== 'skipped');
  for (const state of states) {
    const settled = action(state, { empty: 'true' });
    expect(decideExisting(settled, { empty: 'false' }, signed).decision).toBe('conflict');
    expect(decideExisting(settled, { empty: 'true' }, unsigned).decision).not.toBe('conflict');
    expect(decideExisting(settled, {}, unsigned).decision).not.toBe('conflict');
  }
});

test('a currency without a fee rule is held before the predecessor is asked', () => {
  expect(decideNew({ ...usual, predecessor: waits, inspection: held('no_fee_rule') }, unsigned).decision).toBe('held');
});

test('a period without rows waits for its predecessor, because that may carry a balance into it', () => {
  expect(decideNew({ ...usual, predecessor: waits, inspection: held('empty') }, unsigned).decision).toBe('deferred');
  expect(decideNew({ ...usual, predecessor: free, inspection: held('empty') }, unsigned).decision).toBe('held');
});

test('a release lifts held, never deferred', () => {
  expect(decideNew({ ...usual, predecessor: free, inspection: held('empty') }, signed).decision).toBe('admitted');
  expect(decideNew({ ...usual, predecessor: waits, inspection: ready }, signed).decision).toBe('deferred');
});

test('a run later than the rule allows is held before anything else is asked, until a person releases it', () => {
  const late = { predecessor: waits, inspection: ready, late: true, limit: null };
  expect(decideNew(late, unsigned)).toMatchObject({ decision: 'held', code: 'late' });
  expect(decideNew({ ...late, predecessor: free }, signed).decision).toBe('admitted');
});

test('a limit that is reached defers, after everything that would hold', () => {
  const limit = { code: 'backlog_count', reason: 'full' };
  expect(decideNew({ predecessor: free, inspection: ready, late: false, limit }, unsigned)).toMatchObject({
    decision: 'deferred',
    code: 'backlog_count',
  });
  expect(decideNew({ predecessor: free, inspection: held('empty'), late: false, limit }, unsigned).decision).toBe(
    'held',
  );
});

test('a free key with nothing against it is admitted', () => {
  expect(decideNew({ ...usual, predecessor: free, inspection: ready }, unsigned).decision).toBe('admitted');
  const first = { needed: false, period: null, done: false };
  expect(decideNew({ ...usual, predecessor: first, inspection: ready }, unsigned).decision).toBe('admitted');
});

test('a deferred run asks every second while an earlier period is under way, else ever more slowly up to five minutes', () => {
  fc.assert(
    fc.property(fc.nat(100), (asked) => {
      expect(askAgainAfter(asked, true)).toBe(1_000);
      const wait = askAgainAfter(asked, false);
      expect(wait).toBeGreaterThanOrEqual(1_000);
      expect(wait).toBeLessThanOrEqual(300_000);
      expect(askAgainAfter(asked + 1, false)).toBeGreaterThanOrEqual(wait);
    }),
  );
});
