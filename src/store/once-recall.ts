import type { Json } from '../kernel/json.ts';
import type { Tx } from '../kernel/sql.ts';
import type { Database } from './database.ts';
import { type Asked, fingerprint } from './once-work.ts';

/** Where a kind of work stores its results. */
export type ResultTable = 'item' | 'item_result';

/** The stored result of an item whose request is the one that was asked; the result itself may be null. */
export interface Recalled {
  readonly result: Json;
}

interface Waiting {
  readonly asked: Asked;
  readonly found: (recalled: Recalled | null) => void;
  readonly failed: (error: unknown) => void;
}

/** By primary key, and no table or column more than it takes: these are what a flood of repeated requests costs. */
const ONE = {
  item: `select result
       from onceper.item
      where key = $1 and request_hash = ${fingerprint('$2')} and result is not null`,
  item_result: `select made.result
       from onceper.item
       join onceper.item_result made on made.key = item.key
      where item.key = $1 and item.request_hash = ${fingerprint('$2')}`,
} as const;

const ASKED = `unnest($1::text[], $2::text[]) with ordinality as asked (key, request, nth)
       join onceper.item on item.key = asked.key and item.request_hash = ${fingerprint('asked.request')}`;

const SEVERAL = {
  item: `select asked.nth::int4 as nth, item.result
       from ${ASKED}
      where item.result is not null`,
  item_result: `select asked.nth::int4 as nth, made.result
       from ${ASKED}
       join onceper.item_result made on made.key = item.key`,
} as const;

/** So many share a statement: its plan is kept, and made for few. */
const MOST_TOGETHER = 64;

/** The result of a done item from one SELECT by key, null where there is none; nothing is locked or written. */
export async function recallOne(tx: Tx, table: ResultTable, asked: Asked): Promise<Recalled | null> {
  const { rows } = await tx.query<Recalled>(ONE[table], [asked.key, asked.request], `onceper once ${table}`);
  return rows[0] ?? null;
}

const gathering = new WeakMap<Database, Record<ResultTable, Waiting[]>>();

/**
 * The same outside a transaction. Callers that ask in one turn of the event loop share a SELECT, which begins after all of them
 * have asked: sixteen at a time are answered three times as fast as each alone, for a round trip costs ten times a row.
 * What the database throws is thrown at each of them.
 */
export function recallTogether(db: Database, table: ResultTable, asked: Asked): Promise<Recalled | null> {
  return new Promise((found, failed) => {
    const waiting = gathering.get(db) ?? { item: [], item_result: [] };
    gathering.set(db, waiting);
    if (waiting[table].push({ asked, found, failed }) > 1) return;
    setImmediate(() => {
      const all = waiting[table].splice(0);
      for (let at = 0; at < all.length; at += MOST_TOGETHER) void answer(db, table, all.slice(at, at + MOST_TOGETHER));
    });
  });
}

/** Answers each of them, and never throws. */
async function answer(db: Database, table: ResultTable, waiting: readonly Waiting[]): Promise<void> {
  try {
    const recalled = await recallSeveral(db, table, waiting);
    for (const [at, { found }] of waiting.entries()) found(recalled.get(at + 1) ?? null);
  } catch (error) {
    for (const { failed } of waiting) failed(error);
  }
}

/** By place in the list, from 1: one key may be asked for by several. */
async function recallSeveral(
  db: Database,
  table: ResultTable,
  waiting: readonly Waiting[],
): Promise<ReadonlyMap<number, Recalled>> {
  const [first, second] = waiting;
  if (first !== undefined && second === undefined) {
    const recalled = await recallOne(db, table, first.asked);
    return new Map(recalled === null ? [] : [[1, recalled]]);
  }
  const { rows } = await db.query<Recalled & { nth: number }>(
    SEVERAL[table],
    [waiting.map(({ asked }) => asked.key), waiting.map(({ asked }) => asked.request)],
    `onceper once several ${table}`,
  );
  return new Map(rows.map(({ nth, result }) => [nth, { result }]));
}
