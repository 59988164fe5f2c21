import type { AuditVerb } from '../../../src/kernel/audit.ts';
import type { Tx } from '../../../src/kernel/sql.ts';
import { appendAudit, auditHead } from '../../../src/store/audit.ts';
import { type Database, transaction } from '../../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

/** Appends `count` entries of a key, one transaction each. */
export async function appendMany(db: Database, count: number, key = 'tiny:2026-01'): Promise<void> {
  const verbs: readonly AuditVerb[] = ['grant', 'seal', 'close', 'release'];
  for (let n = 1; n <= count; n += 1) {
    const verb = verbs[n % verbs.length] ?? 'grant';
    const entry = { actor: `os:p${n % 3}`, verb, job: 'tiny', key, run: `run-${n}`, detail: { n, note: 'é "quoted"' } };
    await transaction(db, {}, (tx) => appendAudit(tx, entry));
  }
}

/**
 * Does to the audit what its triggers and roles refuse, as the server's superuser can. `rehash` makes the database hash rows anew,
 * from one on, each after the one before it, as whoever knows how would; with `moveHead` the head agrees.
 */
export async function tamper(
  db: Database,
  work: (tx: Tx) => Promise<unknown>,
  rehash: { readonly from: number; readonly until?: number; readonly moveHead?: boolean } | null = null,
): Promise<void> {
  await transaction(db, {}, async (tx) => {
    await tx.query('set local session_replication_role = replica');
    await work(tx);
    if (rehash === null) return;
    await tx.query(
      `do $$
       declare
         entry onceper.audit;
         chained text := (select hash from onceper.audit where seq = ${rehash.from} - 1);
       begin
         for entry in select * from onceper.audit where seq between ${rehash.from} and ${rehash.until ?? 1_000_000} order by seq loop
           entry.previous := coalesce(chained, repeat('0', 64));
           chained := onceper.audit_hash(entry);
           update onceper.audit set previous = entry.previous, hash = chained where seq = entry.seq;
         end loop;
       end $$`,
    );
    if (rehash.moveHead === true) {
      await tx.query(
        `update onceper.audit_head set (seq, hash) = (select seq, hash from onceper.audit order by seq desc limit 1)`,
      );
    }
  });
}

/** Renumbers the rows from one on by `by`, first out of the way and then into place. */
export async function renumber(tx: Tx, from: number, by: number): Promise<void> {
  await tx.query(`update onceper.audit set seq = seq + 1000000 where seq >= $1`, [from]);
  await tx.query(`update onceper.audit set seq = seq - 1000000 + $1 where seq >= 1000000`, [by]);
}

/** A database with a chain of its own; the caller drops it. */
export async function chainOf(
  open: (url: string) => Database,
  count: number,
): Promise<{
  readonly database: TestDatabase;
  readonly db: Database;
  readonly head: Awaited<ReturnType<typeof auditHead>>;
}> {
  const database = await createTestDatabase();
  const db = open(database.url);
  await appendMany(db, count);
  return { database, db, head: await auditHead(db) };
}
