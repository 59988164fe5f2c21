import { afterAll, beforeAll, expect, test } from 'vitest';
import { attemptsOfKey } from '../../src/store/attempts.ts';
import type { Database } from '../../src/store/database.ts';
import { transaction } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { close, endAttempt, mustClaim, openRunOf, performOne, servicesFor, testPool } from '../support/ledger.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = testPool(database.url);
  await installTinyJob(db);
  await db.query(`create schema spoilt`);
  await db.query(`create table spoilt.row (state text)`);
  await db.query(`create function spoilt.refuse() returns trigger language plpgsql as $$
    begin
      if new.state = 'end' then
        perform pg_terminate_backend(pg_backend_pid());
      end if;
      raise exception 'planted' using errcode = new.state;
    end $$`);
  await db.query(`create constraint trigger refuse after insert on spoilt.row deferrable initially deferred
    for each row execute function spoilt.refuse()`);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const spoil = (state: string) => ({ text: `insert into spoilt.row values ($1)`, values: [state] });

test.each([
  ['40001', 'serialization'],
  ['40P01', 'deadlock'],
  ['40000', 'serialization'],
  ['40002', 'serialization'],
  ['40003', 'commit_unknown'],
  ['23503', 'constraint'],
  ['23505', 'constraint'],
  ['23514', 'constraint'],
  ['22003', 'database'],
  ['44000', 'database'],
  ['P0001', 'database'],
  ['42501', 'permission_denied'],
  ['53100', 'database_full'],
  ['55P03', 'lock_timeout'],
  ['57014', 'statement_timeout'],
  ['57P01', 'commit_unknown'],
  ['57P05', 'commit_unknown'],
  ['25P04', 'commit_unknown'],
  ['08006', 'commit_unknown'],
  ['58030', 'commit_unknown'],
  ['XX000', 'commit_unknown'],
  ['end', 'commit_unknown'],
])('COMMIT that the server answers with %s is %s, and the connection is of use or gone', async (state, code) => {
  const { text, values } = spoil(state);
  await expect(transaction(db, {}, (tx) => tx.query(text, values))).rejects.toMatchObject({ code });
  await expect(transaction(db, {}, (tx) => tx.query('select 1'))).resolves.toMatchObject({ rowCount: 1 });
});

test('a transaction whose failed statement nobody heeded is said to be rolled back, not unknown', async () => {
  const swallowed = transaction(db, {}, (tx) => tx.query('select 1/0').catch(() => undefined));
  await expect(swallowed).rejects.toMatchObject({ code: 'rolled_back' });
});

test('four conflicts on COMMIT, in a slice and in the close, use nothing of the budget, and the fifth attempt is done', async () => {
  const planted = ['40001', '40P01'];
  const conflict = async (tx: Parameters<Parameters<typeof transaction>[2]>[0], at: string[]) => {
    const state = at.pop();
    if (state !== undefined) await tx.query(spoil(state).text, [state]);
  };
  const inSlice = [...planted];
  const inClose = [...planted];
  const hooks = {
    perform: (tx: Parameters<typeof conflict>[0]) => conflict(tx, inSlice),
    close: (tx: Parameters<typeof conflict>[0]) => conflict(tx, inClose),
  };
  const services = servicesFor(db, [createTinyJob(1, hooks)]);
  const { run, key } = await openRunOf(services);
  const codes: unknown[] = [];
  for (let pass = 1; pass <= 4; pass += 1) {
    const grant = await mustClaim(services, { run, pass });
    const code = await performOne(services, grant, 0)
      .then(() => close(services, grant))
      .then(String, (error: { code: string }) => error.code);
    codes.push(code);
    const end = { key: grant.key, fence: grant.fence, outcome: 'failed', code, detail: null, slicesBegun: 1 } as const;
    expect(await endAttempt(services, end)).toMatchObject({ kind: 'again', spent: 0 });
  }
  expect(codes).toEqual(['deadlock', 'serialization', 'deadlock', 'serialization']);
  const last = await mustClaim(services, { run, pass: 5 });
  await performOne(services, last, 0);
  expect(await close(services, last)).toMatchObject({ kind: 'done' });
  expect((await attemptsOfKey(db, key ?? '')).map(({ outcome }) => outcome)).toEqual([
    ...Array<string>(4).fill('failed'),
    'done',
  ]);
});
