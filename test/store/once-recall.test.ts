import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, openDatabase, transaction } from '../../src/store/database.ts';
import { once } from '../../src/store/once.ts';
import { onceMany } from '../../src/store/once-many.ts';
import { recallTogether } from '../../src/store/once-recall.ts';
import { askedOf, type Item, type SqlWork } from '../../src/store/once-work.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = openDatabase({ url: database.url, name: 'once-recall-test', max: 16 });
  await db.query('create table pay (key text not null, amount bigint not null)');
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const PAID = `insert into pay (key, amount) select key, (request ->> 'amount')::bigint from claim returning key, amount`;

/** The same work with its result in either table. */
const WORKS: Readonly<Record<'item' | 'item_result', SqlWork>> = {
  item: { steps: { paid: PAID }, result: { known: `jsonb_build_object('amount', request ->> 'amount')` } },
  item_result: {
    steps: { paid: PAID },
    result: { read: `select key, jsonb_build_object('amount', amount::text) from paid` },
  },
};

function itemsOf(name: string, count: number): Item[] {
  return Array.from({ length: count }, (_, n) => ({ key: `${name}:${n}`, request: { amount: String(100 + n) } }));
}

/** The last few that this kind of work met were duplicates, so that the next is looked up first. */
async function expectDuplicates(work: SqlWork, known: Item): Promise<void> {
  for (let asked = 0; asked < 8; asked += 1) await once(db, known.key, known.request, work);
}

describe.each(['item', 'item_result'] as const)('of callers in one moment, where the result is in %s,', (table) => {
  const work = WORKS[table];

  test('each gets its own result, a conflict or its work, and nothing is done twice', async () => {
    const done = itemsOf(`mixed-${table}`, 150);
    await onceMany(db, done, work);
    const [first, second] = done as [Item, Item];
    await expectDuplicates(work, first);
    const asked = [
      ...done,
      first,
      { key: second.key, request: { amount: '7' } },
      { key: `new-${table}`, request: { amount: '8' } },
    ];
    const outcomes = await Promise.all(asked.map(({ key, request }) => once(db, key, request, work)));
    expect(outcomes.slice(0, 151)).toEqual(
      [...done, first].map(({ request }) => ({ kind: 'duplicate', result: request })),
    );
    expect(outcomes.slice(151).map(({ kind }) => kind)).toEqual(['conflict', 'done']);
    const { rows } = await db.query<{ most: number; paid: number }>(
      `select max(n)::int4 as most, sum(n)::int4 as paid
         from (select count(*) as n from pay where key like 'mixed-' || $1 || ':%' or key = 'new-' || $1 group by key) p`,
      [table],
    );
    expect(rows).toEqual([{ most: 1, paid: 151 }]);
  });

  test('sixty-four at most share a SELECT', async () => {
    const done = itemsOf(`shared-${table}`, 100);
    await onceMany(db, done, work);
    const texts: string[] = [];
    const counted: Database = {
      ...db,
      query: (text, values, name) => {
        texts.push(text);
        return db.query(text, values, name);
      },
    };
    const recalled = await Promise.all(
      done.map(({ key, request }) => recallTogether(counted, table, askedOf(key, request))),
    );
    expect(recalled).toEqual(done.map(({ request }) => ({ result: request })));
    expect(texts).toHaveLength(2);
  });

  test('duplicates write 0 bytes of write-ahead log', async (context) => {
    context.skip((await db.serverVersion()) < 180_000, 'PostgreSQL before 18 does not count the WAL of one backend');
    const done = itemsOf(`silent-${table}`, 50);
    await onceMany(db, done, work);
    await db.query('vacuum analyze onceper.item, onceper.item_result');
    const one = openDatabase({ url: database.url, name: 'once-recall-one', max: 1 });
    const written = async () => {
      await one.query('select pg_stat_force_next_flush()');
      const { rows } = await one.query<{ bytes: bigint }>(
        'select wal_bytes::int8 as bytes from pg_stat_get_backend_wal(pg_backend_pid())',
      );
      return rows[0]?.bytes;
    };
    const ask = () => Promise.all(done.map(({ key, request }) => once(one, key, request, work)));
    try {
      await ask();
      const before = await written();
      expect((await ask()).every(({ kind }) => kind === 'duplicate')).toBe(true);
      expect(await written()).toBe(before);
      await once(one, `loud-${table}`, { amount: '1' }, work);
      expect(await written()).not.toBe(before);
    } finally {
      await one.close();
    }
  });

  test('one that asks in its transaction sees what that has written, and shares with nobody', async () => {
    const [known] = itemsOf(`known-${table}`, 1) as [Item];
    await once(db, known.key, known.request, work);
    await transaction(db, {}, async (tx) => {
      const own = { key: `own-${table}`, request: { amount: '9' } };
      expect((await once(tx, own.key, own.request, work)).kind).toBe('done');
      await expectDuplicates(work, known);
      expect(await once(tx, own.key, own.request, work)).toEqual({ kind: 'duplicate', result: own.request });
    });
  });
});

test('a database that is not there is said to each of those who asked', async () => {
  const gone = openDatabase({ url: database.url, name: 'once-recall-gone', max: 1 });
  await gone.close();
  const asked = itemsOf('gone', 3).map(({ key, request }) => recallTogether(gone, 'item', askedOf(key, request)));
  const ends = await Promise.allSettled(asked);
  expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
});
