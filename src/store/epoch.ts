import { OnceperError } from '../kernel/error.ts';
import type { Identity } from '../kernel/rewind.ts';
import type { Instant, Tx } from '../kernel/sql.ts';

/** A freeze of delivery: since when, and why. */
export interface Freeze {
  readonly at: Instant;
  readonly reason: string;
}

/** Columns of a statement over onceper.epoch that say who the database is, as Identity names them. */
export const IDENTITY = `(select system_identifier::text from pg_control_system()) as "systemIdentifier",
            ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4 as timeline, epoch::text as epoch`;

/** The identity of the database as it stands; changes nothing. */
export async function readIdentity(tx: Tx): Promise<Identity> {
  const { rows } = await tx.query<Identity>(`select ${IDENTITY} from onceper.epoch`);
  return mustHave(rows[0]);
}

/** The identity under the lock of its row, so that it can't change before it is counted on. */
export async function lockIdentity(tx: Tx): Promise<Identity> {
  await tx.query(`select from onceper.epoch for update`);
  return readIdentity(tx);
}

/** Counts one more look and returns the identity after it, to be remembered outside. */
export async function advanceEpoch(tx: Tx): Promise<Identity> {
  await tx.query(`update onceper.epoch set epoch = epoch + 1, looked_at = clock_timestamp()`);
  return readIdentity(tx);
}

/** Never lets the epoch lie below what was remembered outside, so that the next look is not taken for another rewind. */
export async function raiseEpoch(tx: Tx, least: string): Promise<void> {
  await tx.query(`update onceper.epoch set epoch = greatest(epoch, $1::int8)`, [least]);
}

/** The freeze that holds, or null. */
export async function readFreeze(tx: Tx): Promise<Freeze | null> {
  const { rows } = await tx.query<Freeze>(
    `select frozen_at as at, frozen_reason as reason from onceper.epoch where frozen_at is not null`,
  );
  return rows[0] ?? null;
}

/**
 * Freezes delivery: no relay takes an effect until a person has reconciled. False where it was frozen already; the first
 * reason stands.
 */
export async function freezeDelivery(tx: Tx, reason: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.epoch set frozen_at = clock_timestamp(), frozen_reason = $1 where frozen_at is null`,
    [reason],
  );
  return rowCount === 1;
}

/** Ends the freeze; false where there was none. */
export async function thawDelivery(tx: Tx): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.epoch set frozen_at = null, frozen_reason = null where frozen_at is not null`,
  );
  return rowCount === 1;
}

/**
 * Marks those of the numbers as unknown that this database believes unsent or in the middle of a send, though the counterparty
 * knows them: each is looked up, and recorded as what it is, before anything is sent. Returns how many.
 */
export async function markKnownOutside(tx: Tx, numbers: readonly string[]): Promise<number> {
  const { rowCount } = await tx.query(
    `update onceper.outbox
        set state = 'unknown', fence = fence + 1, attempts = greatest(attempts, 1),
            first_sent_at = coalesce(first_sent_at, clock_timestamp()), last_sent_at = coalesce(last_sent_at, clock_timestamp()),
            due_at = clock_timestamp()
      where number = any ($1::text[]) and state in ('pending', 'sending')`,
    [numbers],
  );
  return rowCount;
}

/** Insists that onceper.epoch has its row. Throws OnceperError `epoch_missing`. */
export function mustHave<Found extends Identity>(identity: Found | undefined): Found {
  if (identity !== undefined) return identity;
  throw new OnceperError({
    code: 'epoch_missing',
    message: 'onceper.epoch has no row',
    remedy: 'npx onceper migrate makes it; it is never deleted',
  });
}
