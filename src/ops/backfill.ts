import { OnceperError } from '../kernel/error.ts';
import type { Tx } from '../kernel/sql.ts';
import { appendAudit } from '../store/audit.ts';
import { unknownBackfill } from '../store/backfill-advance.ts';
import {
  type Backfill,
  type BackfillPeriod,
  backfillById,
  cancelBackfill,
  cancelWaiting,
  lockBackfill,
  periodsOfBackfill,
} from '../store/backfills.ts';
import { type Database, transaction } from '../store/database.ts';

/** A backfill, each of its periods, and how far it has come: everything is read from rows. */
export interface BackfillStory {
  readonly backfill: Backfill;
  readonly state: 'running' | 'cancelling' | 'cancelled' | 'ended';
  readonly periods: readonly BackfillPeriod[];
}

/** Reads a backfill. Throws OnceperError `unknown_backfill`. */
export async function readBackfill(tx: Tx, id: string): Promise<BackfillStory> {
  const backfill = await backfillById(tx, id);
  if (backfill === null) throw unknownBackfill(id);
  return { backfill, state: stateOf(backfill), periods: await periodsOfBackfill(tx, id) };
}

/** What a backfill is doing as a whole. */
export function stateOf({ cancelledAt, endedAt }: Backfill): BackfillStory['state'] {
  if (endedAt !== null) return cancelledAt === null ? 'ended' : 'cancelled';
  return cancelledAt === null ? 'running' : 'cancelling';
}

/**
 * Stops a backfill from starting anything more, once: periods that wait are cancelled in this transaction, and those that were
 * started go on to their end. Throws OnceperError `unknown_backfill`, `already_over` where it has ended or was cancelled.
 */
export async function stopBackfill(
  db: Database,
  stop: { readonly id: string; readonly actor: string; readonly reason: string },
): Promise<BackfillStory> {
  const { id, actor, reason } = stop;
  return transaction(db, { label: 'backfill', lockTimeout: 15_000 }, async (tx) => {
    const backfill = await lockBackfill(tx, id);
    if (backfill === null) throw unknownBackfill(id);
    if (!(await cancelBackfill(tx, stop))) throw alreadyOver(backfill);
    const stopped = await cancelWaiting(tx, id);
    const story = await readBackfill(tx, id);
    const detail = { reason, stopped, underWay: story.periods.filter(({ state }) => state === 'started').length };
    await appendAudit(tx, {
      actor,
      verb: 'backfill-cancel',
      job: backfill.job,
      key: null,
      run: null,
      subject: id,
      detail,
    });
    return story;
  });
}

function alreadyOver(backfill: Backfill): OnceperError {
  const by = backfill.cancelledBy === null ? '' : `, cancelled by ${backfill.cancelledBy}`;
  return new OnceperError({
    code: 'already_over',
    message: `the backfill is ${stateOf(backfill)}${by}`,
    remedy: `npx onceper backfill show ${backfill.id}`,
    at: backfill.id,
  });
}
