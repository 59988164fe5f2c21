import { parseRule } from '../jobs/rule.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Instant } from '../kernel/sql.ts';
import { type Action, actionByKey, readmitAction } from '../store/actions.ts';
import { type Database, transaction } from '../store/database.ts';
import { ruleVersion } from '../store/rules.ts';
import { runByStartId, type StoredRun, signRelease } from '../store/runs.ts';
import { runCommand } from './commands.ts';

/** A run that a person let go on. Its tick must be started again, so that `open` decides it anew or starts its owner. */
export interface Released {
  readonly id: string;
  readonly job: string;
  readonly key: string;
  readonly scheduledAt: Instant;
  readonly overrides: Readonly<Record<string, string>>;
  /** `held`: `open` will decide the run again, after `decidedAt`. `readmitted`: its key is admitted again already. */
  readonly kind: 'held' | 'readmitted';
  readonly decidedAt: Instant;
}

/**
 * Releases a run once, signed with who and why: a held one, which `open` then decides anew, or the owner of an exhausted or
 * cancelled key, which is admitted again in the same transaction. Slices that were finished stay finished. Throws
 * OnceperError `unknown_run`, `nothing_to_release` where the run needs no release, or `already_released` for an owner that
 * was let go on once: its key is released by another run.
 */
export async function releaseRun(
  db: Database,
  ask: { readonly run: string; readonly actor: string; readonly reason: string },
): Promise<Released> {
  const run = await mustHaveRun(db, ask.run);
  const { startId: id, job, key, scheduledAt, overrides, decidedAt } = run;
  const action = key === null ? null : await actionByKey(db, key);
  if (key === null || scheduledAt === null || !isReleasable(run, action)) throw nothingToRelease(run, action);
  const released = { id, job, key, scheduledAt, overrides, decidedAt };
  if (run.decision === 'held') {
    // Signed before and still held means that its tick was never told: the signature stands, and the tick starts again.
    await signRelease(db, { ...ask, startId: id });
    return { ...released, kind: 'held' };
  }
  if (run.releasedBy !== null) throw alreadyReleased(run);
  const startWindowMs = await startWindowOf(db, action);
  await transaction(db, { lockTimeout: 15_000 }, async (tx) => {
    if (!(await readmitAction(tx, { key, ownerRun: id, startWindowMs }))) {
      throw nothingToRelease(run, await actionByKey(tx, key));
    }
    if (!(await signRelease(tx, { ...ask, startId: id }))) throw alreadyReleased(await mustHaveRun(db, id));
  });
  return { ...released, kind: 'readmitted' };
}

function isReleasable(run: StoredRun, action: Action | null): boolean {
  if (run.decision === 'held') return true;
  return (
    run.decision === 'admitted' &&
    action !== null &&
    action.ownerRun === run.startId &&
    (action.state === 'exhausted' || action.state === 'cancelled')
  );
}

async function startWindowOf(db: Database, action: Action | null): Promise<number> {
  if (action === null) return 0;
  const stored = await ruleVersion(db, action.job, action.ruleVersion);
  return parseRule(stored.body, `${stored.job} version ${stored.version}`).startWindowSeconds * 1_000;
}

async function mustHaveRun(db: Database, id: string): Promise<StoredRun> {
  const run = await runByStartId(db, id);
  if (run !== null) return run;
  throw new OnceperError({
    code: 'unknown_run',
    message: 'no run has this id',
    remedy: 'npx onceper show KEY lists the runs of a key with their ids',
    at: id,
  });
}

function nothingToRelease(run: StoredRun, action: Action | null): OnceperError {
  const state = action === null ? '' : `, and its key is ${action.state}`;
  return new OnceperError({
    code: 'nothing_to_release',
    message: `run ${run.startId} was decided ${run.decision}${state}: only a held run or the owner of an exhausted or cancelled key waits for a person`,
    remedy: run.key === null ? 'correct what it was refused for and start another' : `npx onceper why ${run.key}`,
    at: run.key ?? run.startId,
  });
}

/** A signature is never overwritten: who let it go on the first time must stay readable. */
function alreadyReleased(run: StoredRun): OnceperError {
  return new OnceperError({
    code: 'already_released',
    message: `run ${run.startId} was released before, by ${run.releasedBy ?? 'somebody'}: "${run.releaseReason ?? ''}"`,
    remedy: `${runCommand(run.job, run.period ?? '')} opens another run, which is held and can be released`,
    at: run.key ?? run.startId,
  });
}
