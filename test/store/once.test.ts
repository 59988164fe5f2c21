import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { asTx, connect, type Database, openDatabase, transaction } from '../../src/store/database.ts';
import { once } from '../../src/store/once.ts';
import { onceMany } from '../../src/store/once-many.ts';
import type { Item, SqlWork } from '../../src/store/once-work.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { waitFor } from '../support/wait.ts';

let database: TestDatabase;
let db: Database;
let serial = 0;
let key = '';

beforeAll(async () => {
  database = await createTestDatabase();
  db = openDatabase({ url: database.url, name: 'once-test', max: 24 });
  await db.query(
    'create table pay (number bigint generated always as identity, key text not null, amount bigint not null)',
  );
});
afterEach(() => {
  serial += 1;
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const REQUEST = { account: 'acc-1', amount: '1200' };

/** Pays, and answers with the number that the payment got. */
const PAY: SqlWork = {
  steps: {
    paid: `insert into pay (key, amount) select key, (request ->> 'amount')::bigint from claim returning key, number, amount`,
  },
  result: { read: `select key, jsonb_build_object('amount', amount::text) from paid` },
};

function newKey(): string {
  serial += 1;
  return `pay:2026-09:m-${String(serial).padStart(8, '0')}`;
}

async function payments(of: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>('select count(*)::int4 as count from pay where key = $1', [of]);
  return rows[0]?.count ?? -1;
}

async function rowsOf(of: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*)::int4 as count from onceper.item where key = $1',
    [of],
  );
  return rows[0]?.count ?? -1;
}

/** Until so many statements of this database wait for another transaction. */
async function untilBlocked(count: number): Promise<void> {
  await waitFor(
    async () => {
      const { rows } = await db.query<{ count: number }>(
        `select count(*)::int4 as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return (rows[0]?.count ?? 0) >= count;
    },
    { what: `${count} statements to wait` },
  );
}

describe('an item', () => {
  test('is done once: its work and its result are written together', async () => {
    key = newKey();
    expect(await once(db, key, REQUEST, PAY)).toEqual({ kind: 'done', result: { amount: '1200' } });
    expect(await once(db, key, REQUEST, PAY)).toEqual({ kind: 'duplicate', result: { amount: '1200' } });
    expect(await payments(key)).toBe(1);
  });

  test('asked by twenty at once has one work and one stored result, which all of them get', async () => {
    key = newKey();
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => once(db, key, REQUEST, PAY)));
    expect(outcomes.filter(({ kind }) => kind === 'done')).toHaveLength(1);
    expect(outcomes.filter(({ kind }) => kind === 'duplicate')).toHaveLength(19);
    expect(new Set(outcomes.map((outcome) => JSON.stringify('result' in outcome ? outcome.result : null))).size).toBe(
      1,
    );
    expect(await payments(key)).toBe(1);
  });

  test('whose work is a function, asked by twenty at once, has that called once', async () => {
    key = newKey();
    let calls = 0;
    const work = async (tx: { query: Database['query'] }) => {
      calls += 1;
      await tx.query('insert into pay (key, amount) values ($1, 5)', [key]);
      return { calls };
    };
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => once(db, key, REQUEST, work)));
    expect(outcomes.filter(({ kind }) => kind === 'done')).toHaveLength(1);
    expect(outcomes.every((outcome) => 'result' in outcome && JSON.stringify(outcome.result) === '{"calls":1}')).toBe(
      true,
    );
    expect(calls).toBe(1);
    expect(await payments(key)).toBe(1);
  });

  test('asked with another request is a conflict, and nothing is executed; the order of names makes no other request', async () => {
    key = newKey();
    await once(db, key, { account: 'acc-1', amount: '1200' }, PAY);
    const swapped = await once(db, key, { amount: '1200', account: 'acc-1' }, PAY);
    expect(swapped.kind).toBe('duplicate');
    const other = await once(db, key, { account: 'acc-1', amount: '1300' }, PAY);
    expect(other).toEqual({
      kind: 'conflict',
      asked: expect.stringMatching(/^[0-9a-f]{64}$/),
      stored: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(other.kind === 'conflict' && other.asked !== other.stored).toBe(true);
    expect(await payments(key)).toBe(1);
  });

  test('leaves nothing when the caller’s transaction is rolled back, and its key is free', async () => {
    key = newKey();
    const attempt = transaction(db, {}, async (tx) => {
      expect((await once(tx, key, REQUEST, PAY)).kind).toBe('done');
      throw new Error('the caller changes its mind');
    });
    await expect(attempt).rejects.toThrow('changes its mind');
    expect([await rowsOf(key), await payments(key)]).toEqual([0, 0]);
    expect((await once(db, key, REQUEST, PAY)).kind).toBe('done');
  });

  test('is done by one that waited, when the first is rolled back', async () => {
    key = newKey();
    const client = await connect(db);
    try {
      await client.query('begin');
      await once(asTx(client), key, REQUEST, PAY);
      const second = once(db, key, REQUEST, PAY);
      await untilBlocked(1);
      await client.query('rollback');
      expect((await second).kind).toBe('done');
    } finally {
      client.release();
    }
    expect(await payments(key)).toBe(1);
  });

  test('whose connection dies between its claim and its commit was not done, and is done by the next', async () => {
    key = newKey();
    let died = 0;
    const dying = async (tx: { query: Database['query'] }) => {
      died += 1;
      await tx.query('insert into pay (key, amount) values ($1, 5)', [key]);
      const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
      await db.query('select pg_terminate_backend($1, 5000)', [rows[0]?.pid]);
      return 'never stored';
    };
    await expect(once(db, key, REQUEST, dying)).rejects.toMatchObject({ code: 'connection_lost' });
    // Its answer was lost, so the key was asked a second time; that died as well.
    expect(died).toBe(2);
    expect([await rowsOf(key), await payments(key)]).toEqual([0, 0]);
    expect((await once(db, key, REQUEST, PAY)).kind).toBe('done');
  });

  test('whose function throws can’t be committed without its work, even by a caller that swallows the error', async () => {
    key = newKey();
    const swallowed = transaction(db, {}, async (tx) => {
      await once(tx, key, REQUEST, () => Promise.reject(new Error('no'))).catch(() => undefined);
    });
    await expect(swallowed).rejects.toMatchObject({ code: 'rolled_back' });
    expect(await rowsOf(key)).toBe(0);
  });

  test('is never changed nor deleted', async () => {
    key = newKey();
    await once(db, key, REQUEST, PAY);
    for (const table of ['item', 'item_result']) {
      await expect(db.query(`delete from onceper.${table} where key = $1`, [key])).rejects.toThrow(
        `${table}_append_only`,
      );
      await expect(db.query(`update onceper.${table} set result = '1' where key = $1`, [key])).rejects.toThrow(
        `${table}_append_only`,
      );
      await expect(db.query(`truncate onceper.${table}`)).rejects.toThrow(`${table}_never_truncated`);
    }
  });

  test.each([
    ['an empty key', '', REQUEST],
    ['a key of 501 bytes', 'k'.repeat(501), REQUEST],
    ['a key with a NUL', 'a\0b', REQUEST],
    ['a request that is no JSON', 'k', { amount: 1n } as never],
    ['a number that is none', 'k', { amount: Number.NaN }],
  ])('with %s is refused before anything is asked of the database', async (_, bad, request) => {
    await expect(once(db, bad, request, PAY)).rejects.toMatchObject({ code: 'malformed_item' });
  });

  test('whose work would be executed for duplicates too is refused', async () => {
    const unguarded = { steps: { paid: `insert into pay (key, amount) values ('x', 1)` } };
    await expect(once(db, newKey(), REQUEST, unguarded)).rejects.toMatchObject({ code: 'unguarded_work', at: 'paid' });
  });
});

describe('a batch', () => {
  const item = (of: string, amount = '1200'): Item => ({ key: of, request: { account: 'acc-1', amount } });

  test('of new items, duplicates and conflicts tells each as if it were asked alone, in the order of the items', async () => {
    const [fresh, done, other, twice] = [newKey(), newKey(), newKey(), newKey()];
    await once(db, done, item(done).request, PAY);
    await once(db, other, item(other, '9').request, PAY);
    const batch = [item(twice), item(other), item(done), item(fresh), item(twice), item(twice, '7'), item(other, '9')];
    const outcomes = await onceMany(db, batch, PAY);
    expect(outcomes.map(({ kind }) => kind)).toEqual([
      'done',
      'conflict',
      'duplicate',
      'done',
      'duplicate',
      'conflict',
      'duplicate',
    ]);
    expect(outcomes[2]).toEqual({ kind: 'duplicate', result: { amount: '1200' } });
    for (const one of [fresh, done, other, twice]) expect(await payments(one)).toBe(1);
    expect(await onceMany(db, [], PAY)).toEqual([]);
  });

  test('that fails does none of its items', async () => {
    const [one, two] = [newKey(), newKey()];
    await expect(onceMany(db, [item(one), item(two, 'nothing')], PAY)).rejects.toThrow();
    expect([await rowsOf(one), await rowsOf(two), await payments(one)]).toEqual([0, 0, 0]);
  });

  test('and others of the same keys in the opposite order wait for each other and never deadlock', async () => {
    for (let round = 0; round < 20; round += 1) {
      const batch = Array.from({ length: 200 }, () => item(newKey()));
      const batches = [batch, batch.toReversed(), batch, batch.toReversed()];
      const outcomes = await Promise.all(batches.map((one) => onceMany(db, one, PAY)));
      expect(outcomes.flat().filter(({ kind }) => kind === 'done')).toHaveLength(200);
      expect(outcomes.flat().filter(({ kind }) => kind === 'duplicate')).toHaveLength(600);
    }
  });

  test('that meets a key which another is winning at this moment waits, and gets its result', async () => {
    const [first, second] = [newKey(), newKey()];
    const client = await connect(db);
    try {
      await client.query('begin');
      await once(asTx(client), second, item(second).request, PAY);
      const batch = onceMany(db, [item(second), item(first)], PAY);
      await untilBlocked(1);
      await client.query('commit');
      expect((await batch).map(({ kind }) => kind)).toEqual(['duplicate', 'done']);
    } finally {
      client.release();
    }
  });
});

describe('a duplicate', () => {
  /** Bytes of write-ahead log that this connection has written. */
  async function walOf(tx: { query: Database['query'] }): Promise<bigint> {
    await tx.query('select pg_stat_force_next_flush()');
    const { rows } = await tx.query<{ bytes: bigint }>(
      'select wal_bytes::int8 as bytes from pg_stat_get_backend_wal(pg_backend_pid())',
    );
    return rows[0]?.bytes ?? -1n;
  }

  test('writes 0 bytes of write-ahead log: alone, in a batch, and as a conflict', async (context) => {
    context.skip((await db.serverVersion()) < 180_000, 'PostgreSQL before 18 does not count the WAL of one backend');
    const items = Array.from({ length: 50 }, () => ({ key: newKey(), request: REQUEST }));
    await onceMany(db, items, PAY);
    await db.query('vacuum analyze onceper.item, onceper.item_result');
    const client = await connect(db);
    const tx = asTx(client);
    const ask = async () => {
      for (const one of items) expect((await once(tx, one.key, one.request, PAY)).kind).toBe('duplicate');
      for (const one of items) expect((await once(tx, one.key, { other: true }, PAY)).kind).toBe('conflict');
      expect((await onceMany(tx, items, PAY)).every(({ kind }) => kind === 'duplicate')).toBe(true);
    };
    try {
      await ask();
      const before = await walOf(tx);
      await ask();
      expect((await walOf(tx)) - before).toBe(0n);
      await once(tx, newKey(), REQUEST, PAY);
      expect((await walOf(tx)) - before).toBeGreaterThan(0n);
    } finally {
      client.release();
    }
  });
});
