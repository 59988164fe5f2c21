import type { BackfillAct } from '../kernel/backfill.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import type { ActionState, BackfillPeriodState, Decision } from '../kernel/transitions.ts';

/** A backfill as it is stored; its id is its approval's. */
export interface Backfill {
  readonly id: string;
  readonly job: string;
  readonly mostActive: number;
  readonly actor: string;
  readonly reason: string;
  readonly beganAt: Instant;
  readonly cancelledBy: string | null;
  readonly cancelledAt: Instant | null;
  readonly cancelReason: string | null;
  readonly endedAt: Instant | null;
}

/** A period of a backfill, and what has become of it and of its key by now. */
export interface BackfillPeriod {
  readonly ordinal: number;
  readonly period: string;
  readonly key: string;
  readonly run: string;
  readonly act: BackfillAct;
  readonly state: BackfillPeriodState;
  readonly outcome: string | null;
  readonly startedAt: Instant | null;
  readonly endedAt: Instant | null;
  readonly decision: Decision | null;
  readonly keyState: ActionState | null;
}

/** A period to be stored with its backfill. */
export interface NewBackfillPeriod {
  readonly period: string;
  readonly key: string;
  readonly startId: string;
  readonly scheduledAt: Instant;
  readonly act: BackfillAct;
}

const COLUMNS = `id, job, most_active as "mostActive", actor, reason, began_at as "beganAt", cancelled_by as "cancelledBy",
  cancelled_at as "cancelledAt", cancel_reason as "cancelReason", ended_at as "endedAt"`;

/** Stores a backfill; its periods are stored after it, in the same transaction. */
export async function insertBackfill(
  tx: Tx,
  backfill: Pick<Backfill, 'id' | 'job' | 'mostActive' | 'actor' | 'reason'>,
): Promise<void> {
  await tx.query(`insert into onceper.backfill (id, job, most_active, actor, reason) values ($1, $2, $3, $4, $5)`, [
    backfill.id,
    backfill.job,
    backfill.mostActive,
    backfill.actor,
    backfill.reason,
  ]);
}

/** Stores the periods of a backfill, in order; those to be left alone are stored as left. */
export async function insertBackfillPeriods(tx: Tx, id: string, periods: readonly NewBackfillPeriod[]): Promise<void> {
  await tx.query(
    `insert into onceper.backfill_period (backfill, ordinal, period, key, start_id, scheduled_at, act, state)
     select $1, p.ordinal, p.period, p.key, p.start_id, p.scheduled_at, p.act,
            case when p.act in ('nothing', 'untouched') then 'left' else 'waiting' end
       from unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[])
            with ordinality as p (period, key, start_id, scheduled_at, act, ordinal)`,
    [
      id,
      periods.map((one) => one.period),
      periods.map((one) => one.key),
      periods.map((one) => one.startId),
      periods.map((one) => one.scheduledAt),
      periods.map((one) => one.act),
    ],
  );
}

/** The backfill with this id, or null. */
export async function backfillById(tx: Tx, id: string): Promise<Backfill | null> {
  const { rows } = await tx.query<Backfill>(`select ${COLUMNS} from onceper.backfill where id = $1`, [id]);
  return rows[0] ?? null;
}

/** Locks a backfill until the transaction ends: whoever counts what is under way counts alone. */
export async function lockBackfill(tx: Tx, id: string): Promise<Backfill | null> {
  const { rows } = await tx.query<Backfill>(`select ${COLUMNS} from onceper.backfill where id = $1 for update`, [id]);
  return rows[0] ?? null;
}

/** Backfills of a job, or of all, the newest first. */
export async function listBackfills(tx: Tx, ask: { job: string | null; limit: number }): Promise<Backfill[]> {
  const { rows } = await tx.query<Backfill>(
    `select ${COLUMNS} from onceper.backfill where $1::text is null or job = $1 order by began_at desc, id limit $2`,
    [ask.job, ask.limit],
  );
  return rows;
}

/** Ids of backfills that have not ended, oldest first. */
export async function unfinishedBackfills(tx: Tx, limit: number): Promise<string[]> {
  const { rows } = await tx.query<{ id: string }>(
    `select id from onceper.backfill where ended_at is null order by began_at, id limit $1`,
    [limit],
  );
  return rows.map((row) => row.id);
}

/** The periods of a backfill in order, with what the ledger says of each now. */
export async function periodsOfBackfill(tx: Tx, id: string): Promise<BackfillPeriod[]> {
  const { rows } = await tx.query<BackfillPeriod>(
    `select p.ordinal, p.period, p.key, p.start_id as run, p.act, p.state, p.outcome, p.started_at as "startedAt",
            p.ended_at as "endedAt", r.decision, a.state as "keyState"
       from onceper.backfill_period p
       left join onceper.run r on r.start_id = p.start_id
       left join onceper.action a on a.key = p.key
      where p.backfill = $1 order by p.ordinal`,
    [id],
  );
  return rows;
}

/** Cancels a backfill that has not ended, once; false where it has, or was cancelled before. */
export async function cancelBackfill(
  tx: Tx,
  cancel: { readonly id: string; readonly actor: string; readonly reason: string },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.backfill set cancelled_by = $2, cancelled_at = clock_timestamp(), cancel_reason = $3
      where id = $1 and cancelled_at is null and ended_at is null`,
    [cancel.id, cancel.actor, cancel.reason],
  );
  return rowCount === 1;
}

/** Cancels the periods of a locked backfill that have not been started; what was started goes on. Returns how many. */
export async function cancelWaiting(tx: Tx, id: string): Promise<number> {
  const { rowCount } = await tx.query(
    `update onceper.backfill_period set state = 'cancelled' where backfill = $1 and state = 'waiting'`,
    [id],
  );
  return rowCount;
}
