import type { EffectSelect } from '../kernel/effect-select.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import { HAS_RESULT } from '../kernel/transitions.ts';
import { type Action, actionByKey } from './actions.ts';
import { endAttempt } from './attempts.ts';
import { appendClose } from './audit-ledger.ts';
import { type Database, transaction } from './database.ts';
import { fencedSettings, type Grant, writeEffects } from './slices.ts';
import { notifyDelivering } from './wake.ts';

export type Close =
  | { readonly kind: 'done'; readonly result: unknown }
  | { readonly kind: 'slices_left'; readonly left: number }
  | { readonly kind: 'lease_lost' };

/** When the period of a key ended, and what is told to others of its close. */
export interface ClosingWith {
  /** From this on the key's numbers may have been used, whatever a database remembers; null where it is not known. */
  readonly periodEnds: Instant | null;
  readonly notices: EffectSelect | null;
}

/** Thrown inside the closing transaction to roll the job's document back. */
class CloseLost extends Error {}

/** Extends a live lease. False means it is lost: somebody else may hold the key, and nothing may be written any more. */
export async function renewLease(tx: Tx, grant: Grant): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.action set lease_until = clock_timestamp() + $3 * interval '1 millisecond'
      where key = $1 and fence = $2 and state = 'running' and lease_until > clock_timestamp()`,
    [grant.key, grant.fence, grant.times.lease],
  );
  return rowCount === 1;
}

/**
 * Closes the key in one transaction: the job closes its period and writes the document from the slices' stored results, then
 * the action becomes `done` by its fence; 0 rows there roll everything back. The notices join the
 * effects in the same transaction. Asked again after it succeeded it gives the stored result. The period comes before the
 * action, in the lock order of ARCHITECTURE.md.
 */
export async function closeAction(
  db: Database,
  grant: Grant,
  work: (tx: Tx, results: readonly unknown[]) => Promise<unknown>,
  { periodEnds, notices }: ClosingWith = { periodEnds: null, notices: null },
): Promise<Close> {
  const before = await actionByKey(db, grant.key);
  if (before !== null && HAS_RESULT.has(before.state)) return { kind: 'done', result: before.result };
  if (before === null || !isHeld(before, grant)) return { kind: 'lease_lost' };
  const left = await countUnfinished(db, grant.key);
  if (left > 0) return { kind: 'slices_left', left };
  try {
    return await transaction(db, fencedSettings(grant.times, `close ${grant.key}`), async (tx) => {
      const result = await work(tx, await sliceResults(tx, grant.key));
      if (!(await finishAction(tx, grant, { result, periodEnds, joins: notices !== null }))) throw new CloseLost();
      if (notices !== null) await writeEffects(tx, grant, notices);
      await notifyDelivering(tx, grant.key);
      await endAttempt(tx, { ...grant, outcome: 'done', code: null, detail: null, slicesBegun: 0 });
      await appendClose(tx, { ...grant, run: before.ownerRun, release: before.release }, result);
      return { kind: 'done', result };
    });
  } catch (error) {
    return afterFailedClose(db, grant, error);
  }
}

/** As far as a read can tell: the closing update decides. What is left to do is no business of a holder that was. */
function isHeld(action: Action, grant: Grant): boolean {
  return action.state === 'running' && action.fence === grant.fence && action.leaseLeftMs > 0;
}

/** A zombie's close may fail inside the job, for example on the document's unique key: the ledger says what is true. */
async function afterFailedClose(db: Database, grant: Grant, error: unknown): Promise<Close> {
  const action = await actionByKey(db, grant.key);
  if (action !== null && HAS_RESULT.has(action.state)) return { kind: 'done', result: action.result };
  if (error instanceof CloseLost || (action !== null && action.fence !== grant.fence)) return { kind: 'lease_lost' };
  throw error;
}

/** Marks the key as delivering where effects wait, or are about to join under the lock that this takes. */
async function finishAction(
  tx: Tx,
  grant: Grant,
  { result, periodEnds, joins }: { result: unknown; periodEnds: Instant | null; joins: boolean },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.action a
        set state = 'done', result = $3, done_at = clock_timestamp(), lease_until = clock_timestamp(),
            period_ends = $5, delivering = $4 or exists (select from onceper.outbox o
                                        where o.key = a.key
                                          and o.state in ('pending', 'sending', 'unknown', 'pending_external'))
      where a.key = $1 and a.fence = $2 and a.state = 'running' and a.lease_until > clock_timestamp()
        and not exists (select from onceper.slice s where s.key = a.key and s.done_at is null)`,
    [grant.key, grant.fence, JSON.stringify(result ?? null), joins, periodEnds],
  );
  return rowCount === 1;
}

async function countUnfinished(tx: Tx, key: string): Promise<number> {
  const { rows } = await tx.query<{ left: number }>(
    `select count(*)::int4 as left from onceper.slice where key = $1 and done_at is null`,
    [key],
  );
  return rows[0]?.left ?? 0;
}

async function sliceResults(tx: Tx, key: string): Promise<unknown[]> {
  const { rows } = await tx.query<{ result: unknown }>(
    `select result from onceper.slice where key = $1 and done_at is not null order by slice`,
    [key],
  );
  return rows.map((row) => row.result);
}
