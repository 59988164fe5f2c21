import {
  askAgainAfter,
  decideExisting,
  decideNew,
  type Inspection,
  PREDECESSOR_NOT_DONE,
  type Verdict,
  type Waiver,
} from '../kernel/admission.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Tx } from '../kernel/sql.ts';
import {
  type Action,
  actionByKey,
  isEarlierUnderWay,
  isSettledKey,
  type NewAction,
  readmitAction,
  winAction,
} from './actions.ts';
import { appendDecision, isAudited } from './audit-ledger.ts';
import { type Database, transaction } from './database.ts';
import { requestForHeld } from './held-approval.ts';
import type { Expect } from './held-plan.ts';
import { type Limits, reachedLimit } from './limits.ts';
import { lockJob } from './rules.ts';
import { isUndecided, type RunRequest, recordRun, runByStartId, type StoredRun } from './runs.ts';
import { waiversOf } from './waivers.ts';

/** A run whose key is known, and what an admission would write. */
export interface OpenRequest {
  readonly run: RunRequest & { readonly period: string; readonly key: string };
  readonly admission: Pick<NewAction, 'fingerprint' | 'ruleVersion' | 'release' | 'startWindowMs'>;
  /** The period that must be done first and its key, or null where the job has no such need or this is its first period. */
  readonly predecessor: { readonly period: string; readonly key: string } | null;
  readonly late: boolean;
  readonly limits: Limits;
}

/** The stored run, the action it met or won, and, for a deferred run, when to ask again. */
export interface Opened {
  readonly run: StoredRun;
  readonly action: Action | null;
  readonly askAgainMs: number | null;
}

/** What `open` asks of the job, only where the key has no action. */
export interface OpenHooks {
  /** Tops up the job's period rows in a short transaction of its own, before the one that decides. */
  prepare(): Promise<void>;
  inspect(tx: Tx): Promise<Inspection>;
  /** What the approver of a held run is shown beside the state of its key; nothing where it is absent. */
  readonly expect?: Expect;
}

/**
 * Decides a run, once, and stores the decision on it. Asked again with the same start id it gives the stored decision back,
 * except `deferred` and `held`, which are decided anew; a run that is held opens a request for an approval in the transaction that
 * says so. A key that has an action is decided by SELECTs that lock nothing, so
 * a duplicate adds its run row and nothing else. A free key is won in one READ COMMITTED transaction, job lock first, action
 * before run: of any number of parallel opens of a key one is admitted, and the others name it.
 */
export async function openRun(db: Database, request: OpenRequest, hooks: OpenHooks): Promise<Opened> {
  const stored = await runByStartId(db, request.run.startId);
  if (stored !== null && !isUndecided(stored)) return answer(db, stored);
  const waivers = await waiversFor(db, request.run, stored);
  const existing = await actionByKey(db, request.run.key);
  if (existing !== null) {
    const verdict = decideExisting(existing, request.run.overrides, waivers);
    if (!NEEDS_LOCK.has(verdict.decision)) return answer(db, await recordAlone(db, request.run, verdict));
  }
  await hooks.prepare();
  const run = await transaction(db, { lockTimeout: 15_000 }, (tx) => admit(tx, request, hooks, stored));
  return answer(db, run);
}

/** Admitting takes the key, and holding opens a request. */
const NEEDS_LOCK: ReadonlySet<Verdict['decision']> = new Set(['admitted', 'held']);

/** A run has waivers when it was held before, or when an approved backfill gave them to it beforehand. */
async function waiversFor(tx: Tx, run: RunRequest, stored: StoredRun | null): Promise<readonly Waiver[]> {
  return stored === null && run.trigger !== 'backfill' ? [] : waiversOf(tx, run.startId);
}

/** Stores the refusal of a run that can never be admitted; asked again it gives what is stored. */
export async function refuseRun(db: Database, run: RunRequest, code: string, reason: string): Promise<StoredRun> {
  const stored = await runByStartId(db, run.startId);
  if (stored !== null && !isUndecided(stored)) return stored;
  return recordAlone(db, run, { decision: 'refused', code, reason });
}

/**
 * Stores that a run waits for somebody who knows its job, without a key, and says when it asks again: less and less often, and for
 * as long as it takes.
 */
export async function deferRun(db: Database, run: RunRequest, code: string, reason: string): Promise<Opened> {
  const stored = await runByStartId(db, run.startId);
  if (stored !== null && !isUndecided(stored)) return answer(db, stored);
  const asked = (stored?.asked ?? 0) + 1;
  return answer(db, await recordAlone(db, run, { decision: 'deferred', code, reason }, asked));
}

/** Stores a decision that takes no lock; one that is audited is stored in a transaction with its entry. */
async function recordAlone(db: Database, run: RunRequest, verdict: Verdict, asked = 1): Promise<StoredRun> {
  if (!isAudited(verdict.decision)) return recordRun(db, run, verdict, asked);
  return transaction(db, { lockTimeout: 15_000 }, async (tx) => {
    const stored = await recordRun(tx, run, verdict, asked);
    await appendDecision(tx, stored);
    return stored;
  });
}

async function admit(tx: Tx, request: OpenRequest, hooks: OpenHooks, stored: StoredRun | null): Promise<StoredRun> {
  const { run } = request;
  await lockJob(tx, run.job);
  // Under the lock that an execution takes: one that was read before would hold again what was approved while we waited.
  const waivers = await waiversFor(tx, run, stored);
  const verdict = await judge(tx, request, hooks, waivers, stored);
  if (verdict.decision !== 'admitted') {
    const earlier = verdict.decision === 'deferred' && (await isEarlierUnderWay(tx, run.job, run.period));
    return turnAway(tx, run, hooks, verdict, earlier ? 0 : (stored?.asked ?? 0) + 1);
  }
  if (!(await takeKey(tx, request, waivers))) {
    const winner = await mustHaveAction(tx, run.key);
    return turnAway(tx, run, hooks, decideExisting(winner, run.overrides, waivers), 1);
  }
  const admitted = await recordRun(tx, run, verdict, 1);
  if (admitted.decision === 'admitted') return admitted;
  // Two opens of one start id: the other stored another decision first, and that one stands. Our roll-back frees the key.
  throw new OnceperError({
    code: 'open_raced',
    message: `run ${run.startId} was decided ${admitted.decision} by another open at the same moment`,
    remedy: 'open it again: the stored decision is the answer',
    at: run.key,
  });
}

/** Stores a decision that wins no key; a hold and the request to lift it are stored together. */
async function turnAway(
  tx: Tx,
  request: RunRequest,
  hooks: OpenHooks,
  verdict: Verdict,
  asked: number,
): Promise<StoredRun> {
  const run = await recordRun(tx, request, verdict, asked);
  if (run.decision === 'held') await requestForHeld(tx, run, hooks.expect ?? unknown);
  await appendDecision(tx, run);
  return run;
}

const unknown: Expect = () => Promise.resolve(null);

async function judge(
  tx: Tx,
  request: OpenRequest,
  hooks: OpenHooks,
  waivers: readonly Waiver[],
  stored: StoredRun | null,
): Promise<Verdict> {
  const { run, predecessor } = request;
  const existing = await actionByKey(tx, run.key);
  if (existing !== null) return decideExisting(existing, run.overrides, waivers);
  const done = predecessor === null || (await isSettledKey(tx, predecessor.key));
  // Looking into a period of ten million rows takes a second, and a run that waits for its predecessor asks every second.
  const stillWaits = !done && stored?.code === PREDECESSOR_NOT_DONE;
  return decideNew(
    {
      predecessor: { needed: predecessor !== null, period: predecessor?.period ?? null, done },
      inspection: stillWaits ? { kind: 'ready' } : await hooks.inspect(tx),
      late: request.late,
      limit: await reachedLimit(tx, run.job, request.limits),
    },
    waivers,
  );
}

/** Wins a free key, or one that was stopped and that a waiver of its fence allows to be claimed again. */
async function takeKey(tx: Tx, request: OpenRequest, waivers: readonly Waiver[]): Promise<boolean> {
  const { run, admission } = request;
  const won = await winAction(tx, {
    ...admission,
    key: run.key,
    job: run.job,
    period: run.period,
    ownerRun: run.startId,
    overrides: run.overrides,
  });
  if (won) return true;
  const stopped = await mustHaveAction(tx, run.key);
  if (decideExisting(stopped, run.overrides, waivers).decision !== 'admitted') return false;
  const again = { key: run.key, ownerRun: run.startId, fence: stopped.fence, startWindowMs: admission.startWindowMs };
  return readmitAction(tx, again);
}

/** Reads the action again after the decision: what a caller sees is never older than the run's own row. */
async function answer(db: Database, run: StoredRun): Promise<Opened> {
  const action = run.key === null ? null : await actionByKey(db, run.key);
  if (run.decision !== 'deferred') return { run, action, askAgainMs: null };
  return { run, action, askAgainMs: askAgainAfter(run.asked, run.asked === 0) };
}

async function mustHaveAction(tx: Tx, key: string): Promise<Action> {
  // A statement of its own: inside the insert's own snapshot the winner's row is not visible (360 of 500 losers saw nothing).
  const action = await actionByKey(tx, key);
  if (action !== null) return action;
  throw new OnceperError({
    code: 'action_vanished',
    message: `the key ${key} could neither be won nor found`,
    remedy: 'actions are never deleted: look for a hand that did',
    at: key,
  });
}
