import { randomUUID } from 'node:crypto';
import type { Tx } from '../src/kernel/sql.ts';
import { type Database, transaction } from '../src/store/database.ts';

/** A state machine in a row: who works on a key, until when, and a version that each takeover raises. */
export async function makeMachine(db: Database): Promise<void> {
  await db.query(
    `create table public.machine (key text primary key, state text not null, holder text not null,
                                  version int4 not null default 1, until timestamptz not null)`,
  );
  await db.query('create table public.wage (merchant text primary key, paid int4 not null default 0)');
}

/** Takes a key that is new or whose holder's time is over; the version is the holder's from then on, null is nobody's. */
export async function takeMachine(tx: Tx, key: string, forMs: number): Promise<number | null> {
  const { rows } = await tx.query<{ version: number }>(
    `insert into public.machine as m (key, state, holder, until)
     values ($1, 'working', $2, clock_timestamp() + $3 * interval '1 millisecond')
         on conflict (key) do update set holder = excluded.holder, until = excluded.until, version = m.version + 1
      where m.state = 'working' and m.until <= clock_timestamp()
     returning version`,
    [key, randomUUID(), forMs],
  );
  return rows[0]?.version ?? null;
}

/** One step of a holder: its row is written where the machine's is still its own, or whosever it is. */
async function pay(db: Database, step: { key: string; merchant: string; version: number | null }): Promise<void> {
  await transaction(db, {}, async (tx) => {
    const { rowCount } = await tx.query(
      `select from public.machine where key = $1 and state = 'working' and ($2::int4 is null or version = $2) for share`,
      [step.key, step.version],
    );
    if (rowCount === 1) await tx.query('update public.wage set paid = paid + 1 where merchant = $1', [step.merchant]);
  });
}

/** A transaction of one row whose `where` names the version of the machine's row. */
export function writeUnderVersion(
  db: Database,
  held: { readonly key: string; readonly version: number },
  write: (tx: Tx) => Promise<unknown>,
): () => Promise<void> {
  return () =>
    transaction(db, {}, async (tx) => {
      const { rowCount } = await tx.query(
        `select from public.machine where key = $1 and state = 'working' and version = $2 for share`,
        [held.key, held.version],
      );
      if (rowCount === 1) await write(tx);
    });
}

const MERCHANTS = Array.from({ length: 10 }, (_, at) => `m-${at}`);
const PAID_BEFORE = 3;

/** How many of ten a stalled holder and its successor both pay: it wakes after the other is through, and goes on. */
export async function paidTwice(db: Database, key: string, names: 'version' | 'nothing'): Promise<number> {
  await db.query('truncate public.wage');
  await db.query('insert into public.wage (merchant) select unnest($1::text[])', [MERCHANTS]);
  const first = await takeMachine(db, key, 1);
  const of = (version: number | null) => (names === 'version' ? version : null);
  for (const merchant of MERCHANTS.slice(0, PAID_BEFORE)) await pay(db, { key, merchant, version: of(first) });
  let second = await takeMachine(db, key, 60_000);
  while (second === null) second = await takeMachine(db, key, 60_000);
  const { rows: left } = await db.query<{ merchant: string }>('select merchant from public.wage where paid = 0');
  for (const { merchant } of left) await pay(db, { key, merchant, version: of(second) });
  for (const merchant of MERCHANTS.slice(PAID_BEFORE)) await pay(db, { key, merchant, version: of(first) });
  const { rows } = await db.query<{ n: number }>('select count(*)::int4 as n from public.wage where paid > 1');
  return rows[0]?.n ?? 0;
}
