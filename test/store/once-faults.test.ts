import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Json } from '../../src/kernel/json.ts';
import type { Tx } from '../../src/kernel/sql.ts';
import { type Database, openDatabase, transaction } from '../../src/store/database.ts';
import { once } from '../../src/store/once.ts';
import { onceMany } from '../../src/store/once-many.ts';
import type { SqlWork } from '../../src/store/once-work.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let db: Database;
let serial = 0;
let key = '';
beforeAll(async () => {
  database = await createTestDatabase();
  db = openDatabase({ url: database.url, name: 'once-test', max: 4 });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const REQUEST = { account: 'acc-1', amount: '1200' };

function newKey(): string {
  serial += 1;
  return `pay:2026-09:m-${serial}`;
}

async function rowsOf(of: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*)::int4 as count from onceper.item where key = $1',
    [of],
  );
  return rows[0]?.count ?? -1;
}

describe('an item whose work is wrong', () => {
  const LOST: SqlWork = { steps: { paid: 'insert into nowhere (key) select key from claim returning key' } };
  const CAST: SqlWork = { steps: {}, result: { known: `to_jsonb((request ->> 'account')::bigint)` } };

  test.each([
    ['a table that is not there', LOST, /refused the work: relation "nowhere" does not exist \(42P01\)$/],
    ['a cast that fails', CAST, /refused the work: invalid input syntax for type bigint: "acc-1" \(22P02\)$/],
  ])('by %s is told in PostgreSQL’s own words, and its key is free', async (_, work, message) => {
    key = newKey();
    const asked = [
      () => once(db, key, REQUEST, work),
      () => transaction(db, {}, (tx) => once(tx, key, REQUEST, work)),
      () => onceMany(db, [{ key, request: REQUEST }], work),
    ];
    for (const ask of asked)
      await expect(ask()).rejects.toMatchObject({ code: 'database', message: expect.stringMatching(message) });
    expect(await rowsOf(key)).toBe(0);
  });

  test('as a function is told in PostgreSQL’s own words too', async () => {
    key = newKey();
    const work = (tx: Tx) => tx.query(`select 'x'::int4`).then(() => null);
    await expect(once(db, key, REQUEST, work)).rejects.toMatchObject({
      code: 'database',
      message: expect.stringContaining('invalid input syntax for type integer: "x"'),
    });
  });
});

describe('what the work of an item returns', () => {
  test.each([
    ['nothing', undefined, null],
    ['members that are nothing', { a: undefined, b: 1 }, { b: 1 }],
    ['what JSON has no number for', Number.NaN, null],
  ])('%s is given back as every duplicate gets it', async (_, result, stored) => {
    key = newKey();
    const ask = () => once(db, key, REQUEST, () => Promise.resolve(result));
    expect(await ask()).toEqual({ kind: 'done', result: stored });
    expect(await ask()).toEqual({ kind: 'duplicate', result: stored });
  });

  test('that JSON can’t write is refused by name, and its key is free', async () => {
    key = newKey();
    const amount = (() => ({ amount: 12n })) as unknown as () => Json;
    await expect(once(db, key, REQUEST, () => Promise.resolve(amount()))).rejects.toMatchObject({
      code: 'malformed_item',
      message: expect.stringContaining('BigInt'),
      at: key,
    });
    expect(await rowsOf(key)).toBe(0);
  });
});
