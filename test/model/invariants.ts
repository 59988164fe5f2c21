import { expect } from 'vitest';
import type { Observed } from './observed.ts';

/**
 * What holds between any two looks at the ledger, whatever the model says: fences only grow and each grant has its own, done
 * is for good, a slice is finished once and keeps its fence, at most one attempt a key is open, one document a key, and as
 * many effects and entries as finished slices.
 */
export function expectInvariants(before: Observed, now: Observed): void {
  for (const action of now.actions) {
    const earlier = before.actions.find((other) => other['key'] === action['key']);
    if (earlier === undefined) continue;
    expect(Number(action['fence']), 'fences only grow').toBeGreaterThanOrEqual(Number(earlier['fence']));
    if (earlier['state'] === 'done' || earlier['state'] === 'skipped') expect(action, 'final').toEqual(earlier);
    expect(action['ruleVersion'], 'the rule is pinned').toBe(earlier['ruleVersion']);
  }
  expect(now.actions.length, 'no action is deleted').toBeGreaterThanOrEqual(before.actions.length);
  expectGrants(now);
  expectOnce(before, now);
}

function expectGrants(now: Observed): void {
  for (const { key, fence, state } of now.actions) {
    const attempts = now.attempts.filter((attempt) => attempt['key'] === key);
    const fences = attempts.map((attempt) => attempt['fence']);
    expect(fences, 'every fence is one attempt').toEqual(Array.from({ length: Number(fence) }, (_, at) => at + 1));
    const open = attempts.filter((attempt) => attempt['outcome'] === null).map((attempt) => attempt['fence']);
    expect(open, 'only the newest grant of a running key is open').toEqual(state === 'running' ? [fence] : []);
  }
}

function expectOnce(before: Observed, now: Observed): void {
  const finished = now.slices.filter((slice) => slice['fence'] !== null);
  for (const slice of before.slices.filter((one) => one['fence'] !== null)) {
    expect(finished, 'a finished slice keeps its fence').toContainEqual(slice);
  }
  expect(now.entries.length, 'a finished slice has its rows').toBe(finished.length);
  expect(now.effects.length, 'and its effect').toBe(finished.length);
  expect(new Set(now.effects.map((effect) => effect['number'])).size, 'each once').toBe(finished.length);
  const done = now.actions.filter((action) => action['state'] === 'done').map((action) => action['key']);
  expect(now.documents.map((document) => document['key'])).toEqual(done);
  const decided = now.runs.filter((run) => !['held', 'deferred'].includes(String(run['decision'])));
  const admitted = now.runs.filter((run) => run['decision'] === 'admitted').map((run) => run['startId']);
  for (const action of now.actions.filter((one) => one['state'] !== 'skipped')) {
    expect(admitted, 'the owner was admitted').toContain(action['owner']);
  }
  for (const run of before.runs.filter((one) => !['held', 'deferred'].includes(String(one['decision'])))) {
    const sameRun = decided.find((other) => other['startId'] === run['startId']);
    expect(sameRun?.['decision'], 'a decision stands').toBe(run['decision']);
  }
}
