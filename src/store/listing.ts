import type { Instant, Tx } from '../kernel/sql.ts';
import { asTx, connect, type Database } from './database.ts';
import { MOVES_MONEY } from './outbox-conditions.ts';

/** One transfer that a counterparty lists; `number` and `key` are null where it carries no number of ours. */
export interface ListedTransfer {
  readonly id: string;
  readonly number: string | null;
  readonly key: string | null;
  /** False of one that failed: it moved nothing. */
  readonly moved: boolean;
}

/** A number for which the counterparty has moved money more than once. */
export interface PaidTwice {
  readonly number: string;
  readonly transfers: number;
}

/** A key of which the counterparty knows numbers that the outbox does not have. */
export interface LostNumbers {
  readonly key: string;
  readonly numbers: number;
}

/** Sends from an instant on to `visibleAfterMs` before another, which a list up to then must show. */
interface Sent {
  readonly from: Instant;
  readonly to: Instant;
  readonly visibleAfterMs: number;
}

/** Everything that a counterparty lists, beside the outbox. Gone with its connection. */
export interface Listing {
  /** Adds transfers; returns how many of them were not listed before. */
  add(transfers: readonly ListedTransfer[]): Promise<number>;
  paidTwice(): Promise<PaidTwice[]>;
  lost(): Promise<LostNumbers[]>;
  /** Numbers that this ledger knows were paid and that are not listed, though their sends were; at most `limit`. */
  unlisted(sent: Sent, limit: number): Promise<string[]>;
}

/**
 * Works with an empty listing, on a connection of its own that is closed afterwards: a temporary table, so that memory stays flat
 * however much is listed.
 */
export async function withListing<T>(db: Database, work: (listing: Listing) => Promise<T>): Promise<T> {
  const client = await connect(db);
  try {
    const tx = asTx(client);
    await tx.query(`create temp table listed (
       id text collate "C" primary key, number text collate "C", key text collate "C", moved boolean not null)`);
    return await work(listingOn(tx));
  } finally {
    client.release(true);
  }
}

function listingOn(tx: Tx): Listing {
  return {
    add: (transfers) => addTransfers(tx, transfers),
    paidTwice: () => numbersPaidTwice(tx),
    lost: () => lostNumbers(tx),
    unlisted: (sent, limit) => unlistedNumbers(tx, sent, limit),
  };
}

async function addTransfers(tx: Tx, transfers: readonly ListedTransfer[]): Promise<number> {
  const { rowCount } = await tx.query(
    `insert into pg_temp.listed (id, number, key, moved)
     select * from unnest($1::text[], $2::text[], $3::text[], $4::bool[])
         on conflict (id) do nothing`,
    [
      transfers.map(({ id }) => id),
      transfers.map(({ number }) => number),
      transfers.map(({ key }) => key),
      transfers.map(({ moved }) => moved),
    ],
  );
  return rowCount;
}

async function numbersPaidTwice(tx: Tx): Promise<PaidTwice[]> {
  const { rows } = await tx.query<PaidTwice>(
    `select number, count(*)::int4 as transfers from pg_temp.listed
      where number is not null and moved group by number having count(*) > 1 order by number`,
  );
  return rows;
}

async function lostNumbers(tx: Tx): Promise<LostNumbers[]> {
  const { rows } = await tx.query<LostNumbers>(
    `select key, count(distinct number)::int4 as numbers from pg_temp.listed l
      where number is not null and not exists (select from onceper.outbox o where o.number = l.number)
      group by key order by key`,
  );
  return rows;
}

/** What a person resolved may have been paid under another reference, so it may be missing. */
async function unlistedNumbers(tx: Tx, { from, to, visibleAfterMs }: Sent, limit: number): Promise<string[]> {
  const { rows } = await tx.query<{ number: string }>(
    `select number from onceper.outbox o
      where ${MOVES_MONEY} and state in ('succeeded', 'returned', 'pending_external')
        and code is distinct from 'resolved_by_hand'
        and first_sent_at >= $1 and last_sent_at < $2::timestamptz - $3 * interval '1 millisecond'
        and not exists (select from pg_temp.listed l where l.number = o.number)
      order by number limit $4`,
    [from, to, visibleAfterMs, limit],
  );
  return rows.map((row) => row.number);
}
