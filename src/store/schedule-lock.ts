import type { Tx } from '../kernel/sql.ts';

/**
 * Keeps every other `schedule apply` of the job waiting until the transaction ends. Temporal takes the last writer's word
 * for a schedule without comparing versions, so edits are put in a row here. A lock of its own: opens must not wait for it.
 */
export async function lockSchedule(tx: Tx, job: string): Promise<void> {
  await tx.query(`select pg_advisory_xact_lock(hashtextextended('onceper schedule ' || $1::text, 0))`, [job]);
}
