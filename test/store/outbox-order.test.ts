import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { countOverdueEffects } from '../../src/store/effect-alarms.ts';
import { reachedLimit } from '../../src/store/limits.ts';
import { forced } from '../support/forced.ts';
import { insertEffect, insertNotice, TEST_JOB, take, useTestLedger } from '../support/ledger-rows.ts';

const ledger = useTestLedger();
let one: Database;

beforeAll(() => {
  one = openDatabase({ url: ledger.url, name: 'one connection', max: 1 });
});
afterAll(() => one.close());

const takeAll = () => take(one, 400);

/** What the takes of this connection have read of the outbox so far. */
async function reads(): Promise<{ seqScans: number; fetched: number }> {
  await one.query('select pg_stat_force_next_flush()');
  const { rows } = await one.query<{ seqScans: number; fetched: number }>(
    `select seq_scan::int4 as "seqScans", coalesce(idx_tup_fetch, 0)::int4 as fetched
       from pg_stat_user_tables where relid = 'onceper.outbox'::regclass`,
  );
  const [row] = rows;
  if (row === undefined) throw new Error('the outbox has no statistics');
  return row;
}

test('a take costs what is undelivered, not what was: order is read from the index of the numbers', async () => {
  const key = await ledger.freshKey();
  await forced(
    one,
    `insert into onceper.outbox (number, key, subject, effect, destination, body, written_by_fence, state, counterparty_id,
                                 attempts, first_sent_at)
     select $1 || ':r-' || i || ':XXX:completed', $1, 'r-' || i, 'completed', 'webhook:r-' || i, '{}', 1, 'succeeded', 'x', 1,
            clock_timestamp()
       from generate_series(1, 20000) i`,
    [key],
  );
  await one.query('analyze onceper.outbox');
  const later = await ledger.freshKey();
  await one.query('update onceper.action set delivering = true where key = $1', [key]);
  const told = await insertNotice(one, { key: later, receiver: 'r-7', waitsFor: `${key}:r-7:XXX:completed` });
  const first = await insertNotice(one, { key, receiver: 'accounting' });
  await forced(one, `update onceper.outbox set state = 'dead' where number = $1`, [first]);
  const waiting = await insertNotice(one, { key: later, receiver: 'accounting', waitsFor: first });
  const before = await reads();
  expect((await takeAll()).map(({ number }) => number)).toEqual([told]);
  expect(await takeAll()).toEqual([]);
  const after = await reads();
  expect(after.seqScans).toBe(before.seqScans);
  expect(after.fetched - before.fetched).toBeLessThan(40);
  await forced(one, `update onceper.outbox set state = 'failed' where number = $1`, [first]);
  expect((await takeAll()).map(({ number }) => number)).toEqual([waiting]);
});

test('what waits for an earlier effect is not overdue, and what is owed to receivers holds no run of the job back', async () => {
  const key = await ledger.freshKey();
  const first = await insertNotice(one, { key, receiver: 'accounting' });
  const later = await ledger.freshKey();
  await one.query('update onceper.action set delivering = true where key = $1', [key]);
  await insertNotice(one, { key: later, receiver: 'accounting', waitsFor: first });
  await one.query(
    `update onceper.outbox set due_at = clock_timestamp() - interval '1 hour' where key = any ($1::text[])`,
    [[key, later]],
  );
  await forced(one, `update onceper.action set done_at = clock_timestamp() - interval '1 day' where key = $1`, [later]);
  expect(await countOverdueEffects(one, 60_000)).toBe(1);
  const limits = { runsInFlight: null, backlogEffects: 1, backlogOldestSeconds: 60 };
  expect(await reachedLimit(one, TEST_JOB, limits)).toBeNull();
  await insertEffect(one, { key: later, subject: 'm-1' });
  expect(await reachedLimit(one, TEST_JOB, limits)).toMatchObject({ code: expect.any(String) as string });
});
