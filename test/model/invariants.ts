import { isDeepStrictEqual } from 'node:util';
import type { Observed } from './observed.ts';

type Row = Observed['actions'][number];

/**
 * What holds between any two looks at the ledger, whatever the model says: fences only grow and each grant has its own, done
 * is for good, a slice is finished once and keeps its fence, at most one attempt a key is open, one document a key, and as
 * many effects and entries as finished slices. Returns what is broken. Plain comparisons: this runs after every command.
 */
export function brokenInvariants(before: Observed, now: Observed): string[] {
  return [...brokenActions(before, now), ...brokenGrants(now), ...brokenOnce(before, now), ...brokenRuns(before, now)];
}

function* brokenActions(before: Observed, now: Observed): Generator<string> {
  for (const earlier of before.actions) {
    const action = now.actions.find((other) => other['key'] === earlier['key']);
    if (action === undefined) {
      yield `${earlier['key']}: an action was deleted`;
      continue;
    }
    if (Number(action['fence']) < Number(earlier['fence'])) yield `${action['key']}: the fence fell`;
    const final = earlier['state'] === 'done' || earlier['state'] === 'skipped';
    if (final && !isDeepStrictEqual(action, earlier)) yield `${action['key']}: ${earlier['state']} is final`;
    if (action['ruleVersion'] !== earlier['ruleVersion']) yield `${action['key']}: the pinned rule changed`;
  }
}

function* brokenGrants(now: Observed): Generator<string> {
  for (const { key, fence, state } of now.actions) {
    const attempts = now.attempts.filter((attempt) => attempt['key'] === key);
    if (attempts.some((attempt, at) => attempt['fence'] !== at + 1) || attempts.length !== fence) {
      yield `${key}: not every fence is one attempt`;
    }
    const open = attempts.filter((attempt) => attempt['outcome'] === null).map((attempt) => attempt['fence']);
    if (!isDeepStrictEqual(open, state === 'running' ? [fence] : [])) {
      yield `${key}: attempts are open that are not the newest of a running key`;
    }
  }
}

function* brokenOnce(before: Observed, now: Observed): Generator<string> {
  const finished = now.slices.filter(isFinished);
  for (const slice of before.slices.filter(isFinished)) {
    if (!finished.some((other) => isDeepStrictEqual(other, slice))) yield `${slice['key']}: a finished slice changed`;
  }
  if (now.entries.length !== finished.length) yield 'a finished slice has its rows, once';
  if (new Set(now.effects.map((effect) => effect['number'])).size !== finished.length) yield 'and its effect, once';
  const done = now.actions.filter((action) => action['state'] === 'done').map((action) => action['key']);
  const documents = now.documents.map((document) => document['key']);
  if (!isDeepStrictEqual(documents, done)) yield 'a key has one document, and only when it is done';
}

const isFinished = (slice: Row) => slice['fence'] !== null;

function* brokenRuns(before: Observed, now: Observed): Generator<string> {
  const admitted = now.runs.filter((run) => run['decision'] === 'admitted').map((run) => run['startId']);
  for (const action of now.actions) {
    if (action['state'] !== 'skipped' && !admitted.includes(action['owner'])) yield 'the owner was never admitted';
  }
  for (const run of before.runs.filter((one) => !['held', 'deferred'].includes(String(one['decision'])))) {
    const same = now.runs.find((other) => other['startId'] === run['startId']);
    if (same?.['decision'] !== run['decision']) yield `${run['startId']}: a decision was changed`;
  }
}
