import { asTx, connect, type Database } from './database.ts';

/**
 * Runs `work` while every other `schedule apply` of the job waits. Temporal takes the last writer's word for a schedule
 * without comparing versions, so edits are put in a row here. It is a session's lock, not a transaction's: `work` talks to
 * Temporal, and no transaction may stay open meanwhile. A lock of its own: opens must not wait for it. Throws OnceperError
 * `lock_timeout` after half a minute.
 */
export async function withScheduleLock<T>(db: Database, job: string, work: () => Promise<T>): Promise<T> {
  const client = await connect(db);
  const session = asTx(client);
  let broken = true;
  try {
    await session.query(`set lock_timeout = '30s'`);
    await session.query(`select pg_advisory_lock(hashtextextended('onceper schedule ' || $1::text, 0))`, [job]);
    const result = await work();
    await session.query(`select pg_advisory_unlock(hashtextextended('onceper schedule ' || $1::text, 0))`, [job]);
    await session.query(`reset lock_timeout`);
    broken = false;
    return result;
  } finally {
    // A session that may still hold the lock is closed, which gives it up.
    client.release(broken);
  }
}
