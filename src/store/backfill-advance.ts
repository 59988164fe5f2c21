import { OnceperError } from '../kernel/error.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import { type Backfill, lockBackfill } from './backfills.ts';
import { type Database, transaction } from './database.ts';

/** A run that a backfill starts; its id was fixed when the backfill was stored. */
export interface BackfillStart {
  readonly run: string;
  readonly key: string;
  readonly scheduledAt: Instant;
}

/** Where a backfill stands: what must be started (again) now, and how many periods are under way and wait. */
export interface Advanced {
  readonly backfill: Backfill;
  readonly starts: readonly BackfillStart[];
  readonly ended: number;
  readonly active: number;
  readonly waiting: number;
  readonly isOver: boolean;
}

/**
 * Takes a backfill one step on, in one transaction under its row's lock: writes down which started periods have ended, starts
 * as many as there is room for, in order, and names every started run that nobody has opened yet. However many do this at
 * once, no more than its limit are under way, and a cancelled one starts nothing. Throws OnceperError `unknown_backfill`.
 */
export async function advanceBackfill(db: Database, id: string): Promise<Advanced> {
  return transaction(db, { lockTimeout: 15_000, label: 'backfill' }, async (tx) => {
    const backfill = await lockBackfill(tx, id);
    if (backfill === null) throw unknownBackfill(id);
    const ended = await endFinished(tx, id);
    // Counted and started under the lock: two who count at once would each find the same room.
    const started = await countIn(tx, id, 'started');
    const room = backfill.cancelledAt === null ? Math.max(0, backfill.mostActive - started) : 0;
    const more = room === 0 ? 0 : await startNext(tx, id, room);
    const waiting = await countIn(tx, id, 'waiting');
    const active = started + more;
    const isOver = active === 0 && waiting === 0;
    if (isOver) await endBackfill(tx, id);
    return { backfill, starts: await unopened(tx, id), ended, active, waiting, isOver };
  });
}

/**
 * A started period has ended when its run was turned away, or when its key came to rest, whoever owns it. A held run waits for
 * an approval of its own and not for this backfill.
 */
async function endFinished(tx: Tx, id: string): Promise<number> {
  const { rowCount } = await tx.query(
    `update onceper.backfill_period p
        set state = 'ended', ended_at = clock_timestamp(), outcome = found.outcome
       from (select s.start_id,
                    case when r.decision in ('refused', 'conflict', 'duplicate', 'held') then r.decision
                         when r.decision in ('admitted', 'in_progress') and a.state not in ('admitted', 'running', 'failed')
                         then a.state end as outcome
               from onceper.backfill_period s
               join onceper.run r on r.start_id = s.start_id
               left join onceper.action a on a.key = s.key
              where s.backfill = $1 and s.state = 'started') found
      where p.start_id = found.start_id and p.state = 'started' and found.outcome is not null`,
    [id],
  );
  return rowCount;
}

async function startNext(tx: Tx, id: string, room: number): Promise<number> {
  const { rowCount } = await tx.query(
    `update onceper.backfill_period set state = 'started', started_at = clock_timestamp()
      where backfill = $1 and state = 'waiting'
        and ordinal in (select ordinal from onceper.backfill_period
                         where backfill = $1 and state = 'waiting' order by ordinal limit $2)`,
    [id, room],
  );
  return rowCount;
}

async function countIn(tx: Tx, id: string, state: 'started' | 'waiting'): Promise<number> {
  const { rows } = await tx.query<{ n: number }>(
    `select count(*)::int4 as n from onceper.backfill_period where backfill = $1 and state = $2`,
    [id, state],
  );
  return rows[0]?.n ?? 0;
}

/** Started and not opened: just now, or by a dispatcher that died before it could tell Temporal. */
async function unopened(tx: Tx, id: string): Promise<BackfillStart[]> {
  const { rows } = await tx.query<BackfillStart>(
    `select p.start_id as run, p.key, p.scheduled_at as "scheduledAt"
       from onceper.backfill_period p
      where p.backfill = $1 and p.state = 'started' and not exists (select from onceper.run r where r.start_id = p.start_id)
      order by p.ordinal`,
    [id],
  );
  return rows;
}

async function endBackfill(tx: Tx, id: string): Promise<void> {
  await tx.query(`update onceper.backfill set ended_at = clock_timestamp() where id = $1 and ended_at is null`, [id]);
}

export function unknownBackfill(id: string): OnceperError {
  return new OnceperError({
    code: 'unknown_backfill',
    message: 'no backfill has this id',
    remedy: 'npx onceper backfill list; one that nobody has approved yet is in npx onceper approvals list',
    at: id,
  });
}
