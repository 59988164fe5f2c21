import type { Tx } from '../kernel/sql.ts';
import { type Database, TRANSACTION_TIMEOUT_SINCE } from './database.ts';

const LOOK_EVERY_MS = 100;

/**
 * Bounds how long `work`, a transaction on backend `pid`, waits for a former holder on servers without transaction_timeout:
 * after `graceMs` it ends the backends of this product that block it. On newer servers their own time-out has done so before.
 * Other people's sessions are left alone: the lock time-out, not we, gives up on them.
 */
export async function boundedWait<T>(
  db: Database,
  waiting: { readonly pid: () => number | null; readonly graceMs: number },
  work: () => Promise<T>,
): Promise<T> {
  if ((await db.serverVersion()) >= TRANSACTION_TIMEOUT_SINCE) return work();
  const began = performance.now();
  const timer = setInterval(() => {
    const pid = waiting.pid();
    if (pid === null || performance.now() - began < waiting.graceMs) return;
    // A look that fails is followed by the next; the wait itself is bounded by the lock time-out.
    endBlockers(db, pid).catch(() => undefined);
  }, LOOK_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

async function endBlockers(tx: Tx, pid: number): Promise<void> {
  await tx.query(
    `select pg_terminate_backend(a.pid)
       from unnest(pg_blocking_pids($1)) as b (pid)
       join pg_stat_activity a on a.pid = b.pid
      where a.usename = current_user and a.datname = current_database() and a.application_name like '% slice %'`,
    [pid],
  );
}

/** The backend that a transaction runs on. */
export async function backendOf(tx: Tx): Promise<number | null> {
  const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid ?? null;
}
