import { OnceperError } from '../kernel/error.ts';
import type { Tx } from '../kernel/sql.ts';
import type { ActionState } from '../kernel/transitions.ts';
import { type Action, actionByKey } from './actions.ts';
import { appendAct } from './audit-ledger.ts';
import { type Database, transaction } from './database.ts';
import { lockJob } from './rules.ts';

/** How stopping a key went. A state that can't be stopped is named; `busy` means that a new grant came in between. */
export type Stopped =
  | { readonly kind: 'stopped'; readonly from: ActionState | 'none' }
  | { readonly kind: 'not_stoppable'; readonly state: ActionState | 'none' }
  | { readonly kind: 'slices_finished'; readonly finished: number }
  | { readonly kind: 'busy' };

/**
 * Cancels a key, audited with who and why: its holder's lease is revoked by a plain update that waits for no slice, and commits; then the row is taken
 * `for update`, which waits for the slices in flight, and becomes `cancelled`. Finished slices stay, nothing is sent, and only
 * a release admits the key again. `lockTimeout` in ms; throws OnceperError `lock_timeout`: cancel again.
 */
export async function cancelAction(
  db: Database,
  cancel: { key: string; actor: string; reason: string; lockTimeout: number },
): Promise<Stopped> {
  const before = await actionByKey(db, cancel.key);
  if (before === null) return { kind: 'not_stoppable', state: 'none' };
  await revokeLease(db, cancel.key);
  return transaction(db, { lockTimeout: cancel.lockTimeout, label: 'cancel' }, async (tx) => {
    const stopped = await markCancelled(tx, cancel.key);
    if (!stopped) return refusedStop(tx, cancel.key);
    await endCancelledAttempt(tx, cancel.key);
    const { job, key, state: from } = before;
    await appendAct(tx, cancel, { verb: 'cancel', job, key, detail: { from } });
    return { kind: 'stopped', from };
  });
}

/** What a skip writes where the key has no action yet. */
export interface Skip {
  readonly key: string;
  readonly job: string;
  readonly period: string;
  readonly actor: string;
  readonly reason: string;
  readonly ruleVersion: number;
  readonly release: string;
}

/**
 * Skips a period for good, with its reason: `skip` moves the job's rows on and closes its period, before the action in the
 * lock order; then the action becomes `skipped`, made for it where there was none. A key with a finished slice can't be
 * skipped: what the slice posted would be settled again with the rows that move on.
 */
export async function skipAction(db: Database, skip: Skip, hook: (tx: Tx) => Promise<void>): Promise<Stopped> {
  return transaction(db, { lockTimeout: 15_000, label: 'skip' }, async (tx) => {
    await lockJob(tx, skip.job);
    return skipUnderLock(tx, skip, hook);
  });
}

/** Skips a period as skipAction does, in the transaction of an approval, which holds the job's lock already. */
export async function skipUnderLock(tx: Tx, skip: Skip, hook: (tx: Tx) => Promise<void>): Promise<Stopped> {
  const before = await actionByKey(tx, skip.key);
  const refusal = await refuseToSkip(tx, skip.key, before);
  if (refusal !== null) return refusal;
  await hook(tx);
  const isWritten = before === null ? await insertSkipped(tx, skip) : await markSkipped(tx, skip, before.fence);
  if (!isWritten) throw raced(skip.key);
  return skipped(tx, skip, before?.state ?? 'none');
}

/** Why a key, whose action is given, can't be skipped as it stands; null where it can. */
export async function refuseToSkip(
  tx: Tx,
  key: string,
  action: Action | null,
): Promise<Exclude<Stopped, { kind: 'stopped' | 'busy' }> | null> {
  const finished = await finishedSlices(tx, key);
  if (finished > 0) return { kind: 'slices_finished', finished };
  if (action === null || SKIPPABLE.has(action.state)) return null;
  return { kind: 'not_stoppable', state: action.state };
}

async function skipped(tx: Tx, skip: Skip, from: ActionState | 'none'): Promise<Stopped> {
  await appendAct(tx, skip, { verb: 'skip', job: skip.job, key: skip.key, detail: { from } });
  return { kind: 'stopped', from };
}

/** A claim came in between: the roll-back undoes what the job's hook moved. */
function raced(key: string): OnceperError {
  return new OnceperError({
    code: 'skip_raced',
    message: `${key} was claimed at the same moment`,
    remedy: 'cancel it first, then skip it',
    at: key,
  });
}

const SKIPPABLE: ReadonlySet<ActionState> = new Set(['admitted', 'failed', 'exhausted', 'cancelled']);

async function revokeLease(tx: Tx, key: string): Promise<void> {
  await tx.query(
    `update onceper.action set lease_until = clock_timestamp()
      where key = $1 and state = 'running' and lease_until > clock_timestamp()`,
    [key],
  );
}

async function markCancelled(tx: Tx, key: string): Promise<boolean> {
  const { rows } = await tx.query<{ state: ActionState }>(
    `select state from onceper.action
      where key = $1 and state in ('admitted', 'running', 'failed', 'exhausted')
        and (state <> 'running' or lease_until <= clock_timestamp())
        for update`,
    [key],
  );
  if (rows.length === 0) return false;
  const { rowCount } = await tx.query(
    `update onceper.action set state = 'cancelled', lease_until = clock_timestamp() where key = $1`,
    [key],
  );
  return rowCount === 1;
}

async function endCancelledAttempt(tx: Tx, key: string): Promise<void> {
  await tx.query(
    `update onceper.attempt a
        set outcome = 'cancelled', ended_at = clock_timestamp(),
            slices_finished = (select count(*) from onceper.slice s where s.key = a.key and s.fence = a.fence)
      where a.key = $1 and a.outcome is null`,
    [key],
  );
}

async function refusedStop(tx: Tx, key: string): Promise<Stopped> {
  const action = await actionByKey(tx, key);
  return action?.state === 'running' ? { kind: 'busy' } : { kind: 'not_stoppable', state: action?.state ?? 'none' };
}

async function finishedSlices(tx: Tx, key: string): Promise<number> {
  const { rows } = await tx.query<{ n: number }>(
    `select count(*)::int4 as n from onceper.slice where key = $1 and done_at is not null`,
    [key],
  );
  return rows[0]?.n ?? 0;
}

async function insertSkipped(tx: Tx, skip: Skip): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into onceper.action
       (key, job, period, state, owner_run, lease_until, fingerprint, overrides, rule_version, release, skipped_reason)
     values ($1, $2, $3, 'skipped', $4, clock_timestamp(), '', '{}', $5, $6, $7)
     on conflict (key) do nothing`,
    [skip.key, skip.job, skip.period, `skipped by ${skip.actor}`, skip.ruleVersion, skip.release, skip.reason],
  );
  return rowCount === 1;
}

/** By the fence that was read: a grant since then may have finished slices, though it ended again. */
async function markSkipped(tx: Tx, skip: Skip, fence: bigint): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.action set state = 'skipped', skipped_reason = $2, lease_until = clock_timestamp()
      where key = $1 and fence = $3 and state in ('admitted', 'failed', 'exhausted', 'cancelled')`,
    [skip.key, skip.reason, fence],
  );
  return rowCount === 1;
}
