/**
 * `once` against SQL by hand on 16 connections of one pool. A new item is a key, a business row and an outbox row; its floor is
 * the best single statement that writes the same three rows with the same columns. A duplicate's floor is a bare SELECT of the
 * result by key.
 */
import type { Database } from '../src/store/database.ts';
import { once } from '../src/store/once.ts';
import { onceMany } from '../src/store/once-many.ts';
import type { SqlWork } from '../src/store/once-work.ts';
import type { Section } from './section.ts';

export const CONNECTIONS = 16;
const BATCH = 1_000;
const REQUEST = { account: 'acc-1', amount: '1200' };
const CANONICAL = '{"account":"acc-1","amount":"1200"}';

const TABLES = `
create table pay (key text collate "C" primary key, account text not null, amount bigint not null);
create table send (number bigint generated always as identity primary key, key text not null, body jsonb not null);
create table floor_item (key text collate "C" primary key, request_hash bytea not null, result jsonb,
  done_at timestamptz not null default clock_timestamp())`;

const WORK: SqlWork = {
  steps: {
    paid: `insert into pay (key, account, amount)
           select key, request ->> 'account', (request ->> 'amount')::bigint from claim`,
    sent: `insert into send (key, body) select key, request from claim`,
  },
  result: { known: `jsonb_build_object('paid', request -> 'amount')` },
};

const FLOOR = `with won as (
  insert into floor_item (key, request_hash, result)
  values ($1, sha256(convert_to($2, 'UTF8')), jsonb_build_object('paid', ($2::text)::jsonb -> 'amount'))
  on conflict (key) do nothing returning key),
paid as (insert into pay (key, account, amount)
  select key, ($2::text)::jsonb ->> 'account', (($2::text)::jsonb ->> 'amount')::bigint from won),
sent as (insert into send (key, body) select key, ($2::text)::jsonb from won)
select key from won`;

/** New items, one call each, and in batches of 1,000. */
export async function newItems(db: Database, sizes: readonly number[]): Promise<Section> {
  await db.query(TABLES);
  // Marks of one length: longer keys would be more WAL.
  const alone = (way: string, mark: string, ask: (key: string) => Promise<unknown>) => ({
    name: way,
    perform: (round: string, items: number) => onConnections(keysOf(`${mark}-${round}`, items), ask),
  });
  return {
    name: 'new items',
    work: 'a key, a business row and an outbox row; 16 connections',
    floor: 'one statement by hand',
    sizes,
    ways: [
      alone('one statement by hand', 'hand', (key) => db.query(FLOOR, [key, CANONICAL], 'bench floor')),
      alone('once', 'once', (key) => once(db, key, REQUEST, WORK)),
      {
        name: 'onceMany of 1,000, one connection',
        perform: (round, items) => inBatches(db, keysOf(`many-${round}`, items)),
      },
    ],
  };
}

/** Items that are done already, asked again. */
export async function duplicates(db: Database, sizes: readonly number[]): Promise<Section> {
  const done = keysOf('done', Math.max(...sizes));
  await inBatches(db, done);
  // Else the first reads log hint bits, which no duplicate caused.
  await db.query('vacuum analyze');
  await db.query('checkpoint');
  const bare = (key: string) => db.query('select result from onceper.item where key = $1', [key], 'bench bare select');
  return {
    name: 'duplicates',
    work: 'the stored result of an item that is done; 16 connections',
    floor: 'a bare SELECT by key',
    sizes,
    ways: [
      { name: 'a bare SELECT by key', perform: (_, items) => onConnections(done.slice(0, items), bare) },
      {
        name: 'once',
        perform: (_, items) => onConnections(done.slice(0, items), (key) => once(db, key, REQUEST, WORK)),
      },
    ],
  };
}

function keysOf(round: string, items: number): string[] {
  return Array.from({ length: items }, (_, at) => `pay:${round}:m-${String(at).padStart(8, '0')}`);
}

async function onConnections(keys: readonly string[], ask: (key: string) => Promise<unknown>): Promise<void> {
  let next = 0;
  const loop = async () => {
    for (let key = keys[next++]; key !== undefined; key = keys[next++]) await ask(key);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, loop));
}

async function inBatches(db: Database, keys: readonly string[]): Promise<void> {
  for (let at = 0; at < keys.length; at += BATCH) {
    const batch = keys.slice(at, at + BATCH).map((key) => ({ key, request: REQUEST }));
    const outcomes = await onceMany(db, batch, WORK);
    if (outcomes.some(({ kind }) => kind !== 'done')) throw new Error('a new item of the benchmark was not done');
  }
}
