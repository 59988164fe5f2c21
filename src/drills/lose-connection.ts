import { holdLine, type LinePlace } from '../jobs/settlement/hold-line.ts';
import { asTx, connect, type Database } from '../store/database.ts';
import { until } from './until.ts';

/** A slice that is held in its middle, and the ways on. */
export interface HeldSlice {
  /** Waits until an attempt stands in the held slice, and returns its backend. */
  untilHeld(): Promise<number>;
  /** Waits until an attempt stands in the held slice, ends that attempt's database connection, and returns its backend. */
  loseConnection(): Promise<number>;
  letGo(): Promise<void>;
}

/**
 * Holds the place of one line, so that the slice which writes it stands still after its fence check. Ending the backend that
 * waits there is what a failed network or server does to a worker: for real, and at a moment that can be waited for.
 */
export async function holdSlice(db: Database, key: string, period: string, place: LinePlace): Promise<HeldSlice> {
  const client = await connect(db);
  const tx = asTx(client);
  await tx.query('begin');
  await holdLine(tx, key, period, place);
  const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
  const holder = rows[0]?.pid ?? 0;
  const untilHeld = () => until('a slice that waits', () => backendBlockedBy(db, holder), 60_000);
  return {
    untilHeld,
    async loseConnection() {
      const waiting = await untilHeld();
      await db.query('select pg_terminate_backend($1)', [waiting]);
      await until('the backend to be gone', async () => (await isBackend(db, waiting)) === false, 10_000);
      return waiting;
    },
    async letGo() {
      await tx.query('rollback');
      client.release();
    },
  };
}

/** A backend that waits for a lock of another one, or null. */
export async function backendBlockedBy(db: Database, holder: number): Promise<number | null> {
  const { rows } = await db.query<{ pid: number }>(
    'select pid from pg_stat_activity where $1 = any (pg_blocking_pids(pid)) limit 1',
    [holder],
  );
  return rows[0]?.pid ?? null;
}

async function isBackend(db: Database, pid: number): Promise<boolean> {
  const { rowCount } = await db.query('select from pg_stat_activity where pid = $1', [pid]);
  return rowCount > 0;
}
