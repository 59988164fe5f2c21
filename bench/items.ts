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
import { atOnce, CANONICAL, FLOOR, keysOf, REQUEST } from './work.ts';

const BATCH = 1_000;

const WORK: SqlWork = {
  steps: {
    paid: `insert into pay (key, account, amount)
           select key, request ->> 'account', (request ->> 'amount')::bigint from claim`,
    sent: `insert into send (key, body) select key, request from claim`,
  },
  result: { known: `jsonb_build_object('paid', request -> 'amount')` },
};

/** How many of each, and how often. */
export interface Extent {
  readonly sizes: readonly number[];
  readonly rounds: number;
}

/** The statement by hand, the product alone and in batches, and the bare SELECT by key. */
export const byHand = (db: Database) => (key: string) => db.query(FLOOR, [key, CANONICAL], 'bench floor');
export const byOnce = (db: Database) => (key: string) => once(db, key, REQUEST, WORK);
export const bareSelect = (db: Database) => (key: string) =>
  db.query('select result from onceper.item where key = $1', [key], 'bench bare select');

/** New items, one call each, and in batches of 1,000. */
export function newItems(db: Database, extent: Extent): Section {
  // Marks of one length: longer keys would be more WAL.
  const alone = (way: string, mark: string, ask: (key: string) => Promise<unknown>) => ({
    name: way,
    perform: (round: string, items: number) => atOnce(keysOf(`${mark}-${round}`, items), ask),
  });
  return {
    name: 'new items',
    work: 'a key, a business row and an outbox row; 16 connections',
    floor: 'one statement by hand',
    ...extent,
    ways: [
      alone('one statement by hand', 'hand', byHand(db)),
      alone('once', 'once', byOnce(db)),
      {
        name: 'onceMany of 1,000, one connection',
        perform: (round, items) => inBatches(db, keysOf(`many-${round}`, items), 'done'),
      },
    ],
  };
}

/** Items that are done already, asked again. */
export async function duplicates(db: Database, extent: Extent): Promise<Section> {
  const done = keysOf('done', Math.max(...extent.sizes));
  await inBatches(db, done, 'done');
  await settleDown(db);
  return {
    name: 'duplicates',
    work: 'the stored result of an item that is done; 16 connections',
    floor: 'a bare SELECT by key',
    ...extent,
    ways: [
      { name: 'a bare SELECT by key', perform: (_, items) => atOnce(done.slice(0, items), bareSelect(db)) },
      { name: 'once', perform: (_, items) => atOnce(done.slice(0, items), byOnce(db)) },
    ],
  };
}

/** Else the first reads log hint bits, which no duplicate caused. */
export async function settleDown(db: Database): Promise<void> {
  await db.query('vacuum analyze');
  await db.query('checkpoint');
}

/** Asks for all of them by `onceMany`, a thousand at a time; each must turn out as expected. */
export async function inBatches(db: Database, keys: readonly string[], expected: 'done' | 'duplicate'): Promise<void> {
  for (let at = 0; at < keys.length; at += BATCH) {
    const batch = keys.slice(at, at + BATCH).map((key) => ({ key, request: REQUEST }));
    const outcomes = await onceMany(db, batch, WORK);
    if (outcomes.some(({ kind }) => kind !== expected)) throw new Error(`an item of the benchmark was not ${expected}`);
  }
}
