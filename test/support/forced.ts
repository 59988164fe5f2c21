import type { Tx } from '../../src/kernel/sql.ts';
import { type Database, transaction } from '../../src/store/database.ts';

/**
 * Runs one statement as nobody at work can, past triggers and foreign keys: for a test that needs the ledger to stand somewhere
 * without telling how it came there. The connection's user is a superuser.
 */
export async function forced<Row>(
  db: Database,
  text: string,
  values: readonly unknown[] = [],
): Promise<{ rows: Row[]; rowCount: number }> {
  return transaction(db, {}, async (tx: Tx) => {
    await tx.query('set local session_replication_role = replica');
    return tx.query<Row>(text, values);
  });
}

/** The same inside a statement: `with ${PAST_GUARDS} insert … select … from past`. It holds until the transaction ends. */
export const PAST_GUARDS = `past as materialized (select set_config('session_replication_role', 'replica', true) as role)`;

/** Stores a request as if it had been executed in this transaction, without the asking and deciding; its guards act again at once. */
export async function executeRequest(tx: Tx, kind: string, key: string, subject: string): Promise<void> {
  await tx.query('set local session_replication_role = replica');
  await tx.query(
    `insert into onceper.approval
       (id, kind, subject, job, key, ask, reason, plan, digest, state, requested_by, edited_by, expires_at,
        decided_by, decided_at, executed_by, executed_at)
     values (gen_random_uuid()::text, $1, $3, split_part($2, ':', 1), $2, '{}', 'seen', '{}', repeat('0', 64), 'executed',
             'user:ann', 'user:ann', clock_timestamp() + interval '1 day', 'user:bob', clock_timestamp(), 'user:bob', clock_timestamp())`,
    [kind, key, subject],
  );
  await tx.query('set local session_replication_role = origin');
}
