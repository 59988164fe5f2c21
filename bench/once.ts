/**
 * `once` against hand-written SQL, on 16 connections of one pool, in alternating pairs: `npx tsx bench/once.ts [pairs] [items]`.
 * An item is a key, a business row and an outbox row. The floor is the best single statement that writes the same three rows
 * with the same key and hash columns; a duplicate's floor is a bare SELECT of the result by key. Prints medians of both, the
 * ratio of each pair, and the WAL that each wrote. Its server is durable, as PostgreSQL's defaults are.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../src/embedded/ports.ts';
import { startPostgres } from '../src/embedded/postgres.ts';
import { type Database, openDatabase } from '../src/store/database.ts';
import { migrate } from '../src/store/migrate.ts';
import { once } from '../src/store/once.ts';
import { onceMany } from '../src/store/once-many.ts';
import type { SqlWork } from '../src/store/once-work.ts';

const [pairs = 7, items = 6_000] = process.argv.slice(2).map(Number);
const CONNECTIONS = 16;
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

interface Way {
  readonly name: string;
  readonly ask: (key: string) => Promise<unknown>;
}

interface Figures {
  readonly perSecond: number;
  readonly walPerItem: number;
}

async function measured(db: Database, way: Way, keys: readonly string[]): Promise<Figures> {
  const walBefore = await wal(db);
  const started = performance.now();
  let next = 0;
  const loop = async () => {
    for (let key = keys[next++]; key !== undefined; key = keys[next++]) await way.ask(key);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, loop));
  const seconds = (performance.now() - started) / 1_000;
  return { perSecond: keys.length / seconds, walPerItem: Number((await wal(db)) - walBefore) / keys.length };
}

async function wal(db: Database): Promise<bigint> {
  const { rows } = await db.query<{ at: bigint }>(`select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::int8 as at`);
  return rows[0]?.at ?? 0n;
}

/** Runs both ways in pairs, changing which goes first, on keys that `keysOf` gives to a round. */
async function compare(db: Database, title: string, ways: [Way, Way], keysOf: (round: string) => string[]) {
  const figures: [Figures[], Figures[]] = [[], []];
  for (let round = -1; round < pairs; round += 1) {
    for (const at of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const one = await measured(db, ways[at], keysOf(`${round}-${at}`));
      if (round >= 0) figures[at].push(one);
    }
  }
  const ratios = figures[0].map(({ perSecond }, at) => perSecond / (figures[1][at]?.perSecond ?? Number.NaN));
  const lines = ways.map(({ name }, at) => {
    const some = figures[at === 0 ? 0 : 1];
    return `  ${name}: ${median(some.map((one) => one.perSecond)).toFixed(0)}/s, ${median(some.map((one) => one.walPerItem)).toFixed(0)} B of WAL`;
  });
  const spread = ratios.toSorted((a, b) => a - b).map((ratio) => ratio.toFixed(2));
  const whole = median(figures[0].map((one) => one.perSecond)) / median(figures[1].map((one) => one.perSecond));
  process.stdout.write(
    `${title}\n${lines.join('\n')}\n  ratio of medians ${whole.toFixed(3)}; pairs ${spread.join(' ')}\n`,
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function run(db: Database): Promise<void> {
  await db.query(TABLES);
  const fresh = (round: string) =>
    Array.from({ length: items }, (_, at) => `pay:${round}:m-${String(at).padStart(8, '0')}`);
  const ours: Way = { name: 'once', ask: (key) => once(db, key, REQUEST, WORK) };
  const floor: Way = { name: 'bare statement', ask: (key) => db.query(FLOOR, [key, CANONICAL], 'floor') };
  await compare(db, 'new items', [ours, floor], fresh);

  const done = fresh('done');
  await onceMany(
    db,
    done.map((key) => ({ key, request: REQUEST })),
    WORK,
  );
  await db.query('vacuum analyze');
  await db.query('checkpoint');
  const select = 'select result from onceper.item where key = $1';
  const bare: Way = { name: 'bare select', ask: (key) => db.query(select, [key], 'select') };
  await compare(db, 'duplicates', [ours, bare], () => done);
}

const dir = mkdtempSync(join(tmpdir(), 'onceper-bench-once-'));
chmodSync(dir, 0o755);
const server = await startPostgres({ dir: join(dir, 'pg'), port: await freePort(), durable: true });
try {
  await migrate(server.url);
  const db = openDatabase({ url: server.url, name: 'bench-once', max: CONNECTIONS });
  await run(db);
  await db.close();
} finally {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
}
