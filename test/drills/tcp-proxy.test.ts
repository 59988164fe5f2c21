import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type Ruling,
  type Spoken,
  startPlainProxy,
  startPostgresProxy,
  type TcpProxy,
} from '../../src/drills/tcp-proxy.ts';
import { codeOf } from '../../src/kernel/error.ts';
import { type Database, openDatabase, transaction } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { waitFor } from '../support/wait.ts';

let database: TestDatabase;
let direct: Database;
const closers: (() => Promise<void>)[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  direct = openDatabase({ url: database.url, name: 'direct', max: 2 });
  await direct.query('create table public.note (text text primary key)');
});
afterAll(async () => {
  for (const close of closers.toReversed()) await close();
  await direct.close();
  await database.drop();
});

async function through(rule: (spoken: Spoken) => Ruling): Promise<{ db: Database; proxy: TcpProxy }> {
  const proxy = await startPostgresProxy(database.url, rule);
  const db = openDatabase({ url: proxy.url, name: 'through', max: 2 });
  closers.push(
    () => proxy.close(),
    () => db.close(),
  );
  return { db, proxy };
}

async function isNoted(text: string): Promise<boolean> {
  return (await direct.query('select from public.note where text = $1', [text])).rowCount === 1;
}

const note = (db: Database, text: string) =>
  transaction(db, { label: text }, (tx) => tx.query('insert into public.note values ($1)', [text]));

test('every statement passes that is not ruled otherwise, with those of its transaction before it', async () => {
  const heard: Spoken[] = [];
  const { db } = await through((spoken) => {
    heard.push(spoken);
    return 'pass';
  });
  // The first connection of a pool is asked whether it is a session.
  await db.query('select');
  heard.length = 0;
  await note(db, 'plain');
  expect(await isNoted('plain')).toBe(true);
  expect(heard.map(({ sql }) => sql.split(' ')[0])).toEqual(['begin', 'insert', 'commit']);
  expect(heard.at(-1)?.transaction).toEqual([heard[0]?.sql, heard[1]?.sql]);
});

test('a statement that is held waits with all that follows, until it is released', async () => {
  const { db, proxy } = await through(({ sql }) => (sql.includes('held') ? 'hold' : 'pass'));
  const noting = note(db, 'held');
  await waitFor(() => proxy.held() === 1, { what: 'the begin to be held' });
  expect(await isNoted('held')).toBe(false);
  proxy.release();
  await noting;
  expect(await isNoted('held')).toBe(true);
  await note(db, 'held no more');
});

test('an answer to COMMIT that is lost leaves the client in the dark about what is committed', async () => {
  const { db } = await through(({ sql }) => (sql === 'commit' ? 'lose_answer' : 'pass'));
  const thrown: unknown = await note(db, 'unanswered').catch((error: unknown) => error);
  expect(codeOf(thrown)).toBe('commit_unknown');
  expect(await isNoted('unanswered')).toBe(true);
});

test('a cut resets the connections of its moment, and later ones pass', async () => {
  const proxy = await startPlainProxy(new URL(database.url).host);
  closers.push(() => proxy.close());
  const url = new URL(database.url);
  url.host = proxy.url;
  const db = openDatabase({ url: url.href, name: 'cut', max: 1 });
  closers.push(() => db.close());
  const sleeping = db.query('select pg_sleep(30)').catch((error: unknown) => error);
  await waitFor(async () => await isAsleep(), { what: 'the statement to run' });
  proxy.cut();
  expect(codeOf(await sleeping)).toBe('connection_lost');
  expect((await db.query('select')).rowCount).toBe(1);
});

async function isAsleep(): Promise<boolean> {
  const { rowCount } = await direct.query(
    `select from pg_stat_activity where application_name = 'cut' and state = 'active'`,
  );
  return rowCount === 1;
}
