import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import path from 'node:path';
import { createRowLock, type ExpiringLock } from '../src/drills/expiring-lock.ts';
import { createRedisLock } from '../src/drills/redis-lock.ts';
import { freePort } from '../src/embedded/ports.ts';
import { startPostgres } from '../src/embedded/postgres.ts';
import { leaseTimes } from '../src/kernel/lease.ts';
import type { Tx } from '../src/kernel/sql.ts';
import { claimAttempt } from '../src/store/claim.ts';
import { closeAction } from '../src/store/close.ts';
import { type Database, openDatabase, transaction } from '../src/store/database.ts';
import { migrate } from '../src/store/migrate.ts';
import { type OpenRequest, openRun } from '../src/store/open.ts';
import { performSlice } from '../src/store/slices.ts';
import { medianOf, walPosition } from './figures.ts';
import { makeMachine, paidTwice, takeMachine, writeUnderVersion } from './state-machine.ts';

/**
 * `npx tsx bench/choices.ts [REDIS-SERVER]`: what it costs to be the one who does a period's work, by a lock that expires, a unique constraint and
 * the ledger, on a durable PostgreSQL of its own: alone, by 16 at once on keys of their own, and by 50 at once on one key.
 * Redis takes part where its program is named. docs/choices.md holds its figures.
 */
const KEYS = 400;
const CONNECTIONS = 16;
const CROWD = 50;
const CROWDS = 20;
const ROUNDS = 5;
let nextDay = 0;

/** A way to be the one: true for whoever got the key. */
interface Way {
  readonly name: string;
  take(key: string): Promise<boolean>;
}

const folder = mkdtempSync(path.join(tmpdir(), 'onceper-choices-'));
chmodSync(folder, 0o755);
const server = await startPostgres({ dir: path.join(folder, 'postgres'), port: await freePort(), durable: true });
try {
  await migrate(server.url);
  const db = openDatabase({ url: server.url, name: 'choices', max: CROWD });
  const [, , redisFile] = process.argv;
  const redis = redisFile === undefined ? null : await createRedisLock(redisFile, folder);
  await db.query(
    `with job as (insert into onceper.job (job, active_rule) values ('choices', 1))
     insert into onceper.rule (job, version, body, loaded_by) values ('choices', 1, '{"period":"day"}', 'bench')`,
  );
  await db.query(
    'create table public.settled (key text primary key, at timestamptz not null default clock_timestamp())',
  );
  await makeMachine(db);
  const ways: Way[] = [
    ...(redis === null ? [] : [lockWay('SET NX PX in Redis, in memory', redis)]),
    lockWay('SET NX PX on a row', await createRowLock(db)),
    uniqueWay(db),
    { name: 'state machine in a row', take: async (key) => (await takeMachine(db, key, 60_000)) !== null },
    openWay(db),
    wholeWay(db),
    duplicateWay(db),
  ];
  print(`PostgreSQL ${server.version}, durable; ${cpus().length} cores; medians of ${ROUNDS} rounds\n`);
  print(
    '| way | alone, ms (p50) | alone, ms (p99) | 16 at once, keys/s | 50 on one key, ms | who got it | WAL, B a key |',
  );
  print('|---|---|---|---|---|---|---|');
  for (const way of ways) print(await measured(db, way));
  await printWrites(db, redis);
  print('\n| a holder of the row stalls, another takes over, it wakes up | of 10 merchants paid twice |\n|---|---|');
  const [plain = '', versioned = ''] = freshKeys(2);
  print(`| no write names a version | ${await paidTwice(db, plain, 'nothing')} |`);
  print(`| each write names the version | ${await paidTwice(db, versioned, 'version')} |`);
  await redis?.close();
  await db.close();
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** What a transaction of one row costs its holder who wants to know that it still is. */
async function printWrites(db: Database, redis: ExpiringLock | null): Promise<void> {
  await db.query('create table public.note (text text primary key)');
  const row = await createRowLock(db);
  const note = (tx: Tx) => tx.query('insert into public.note values ($1)', [randomUUID()]);
  const plain = () => transaction(db, {}, note);
  const asked = (lock: ExpiringLock) => async () => {
    await lock.isHeldBy('nobody');
    await plain();
  };
  const [key = ''] = freshKeys(1);
  const fenced = await fencedWrite(db, key, note);
  const version = (await takeMachine(db, key, 600_000)) ?? 0;
  print('\n| a transaction of one row | alone, ms (p50) | is it safe? |\n|---|---|---|');
  const ways: readonly (readonly [string, string, () => Promise<unknown>])[] = [
    ['nothing asked (lock alone, unique constraint)', 'no', plain],
    ...(redis === null ? [] : [['Redis asked before it', 'no', asked(redis)] as const]),
    ['the lock row asked before it', 'no', asked(row)],
    ["under the version of the state machine's row", 'yes', writeUnderVersion(db, { key, version }, note)],
    ['under the fence', 'yes', fenced],
  ];
  const times = ways.map((): number[] => []);
  // Alternating, so that whatever else the machine does befalls all of them alike.
  for (let round = 0; round < KEYS; round += 1) {
    for (const [at, [, , write]] of ways.entries()) {
      const began = performance.now();
      await write();
      times[at]?.push(performance.now() - began);
    }
  }
  for (const [at, [name, safe]] of ways.entries())
    print(`| ${name} | ${medianOf(times[at] ?? []).toFixed(2)} | ${safe} |`);
}

/** One slice after the other of a granted key, each writing one row. */
async function fencedWrite(
  db: Database,
  key: string,
  note: (tx: Tx) => Promise<unknown>,
): Promise<() => Promise<unknown>> {
  const run = (await opened(db, key)) ?? '';
  const times = leaseTimes(600_000);
  const request = { key, run, execution: run, pass: 1, release: 'bench', budget: 5, times };
  const slices = Array.from({ length: KEYS }, (_, at) => ({
    slice: at + 1,
    firstSubject: `m-${at}`,
    lastSubject: `m-${at}`,
  }));
  const claimed = await claimAttempt(db, request, {
    seal: () => Promise.resolve(),
    plan: () => Promise.resolve(slices),
  });
  if (claimed.kind !== 'granted') throw new Error(`the claim was answered ${claimed.kind}`);
  const grant = { key, fence: claimed.fence, times };
  let slice = 0;
  return () => {
    slice += 1;
    return performSlice(db, grant, slice, async (tx) => {
      await note(tx);
      return { result: {}, effects: null };
    });
  };
}

async function measured(db: Database, way: Way): Promise<string> {
  const rounds: { p50: number; p99: number; rate: number; crowd: number; winners: number; wal: number }[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const { p50, p99, wal } = await alone(db, way);
    const rate = await atOnce(way);
    const { ms, winners } = await crowded(way);
    // The first round fills caches and does not count.
    if (round > 0) rounds.push({ p50, p99, rate, crowd: ms, winners, wal });
  }
  const of = (pick: (one: (typeof rounds)[number]) => number) => medianOf(rounds.map(pick));
  const times = `${of((one) => one.p50).toFixed(2)} | ${of((one) => one.p99).toFixed(2)} | ${of((one) => one.rate).toFixed(0)}`;
  const winners = [...new Set(rounds.map((one) => one.winners))].join(' or ');
  return `| ${way.name} | ${times} | ${of((one) => one.crowd).toFixed(1)} | ${winners} | ${of((one) => one.wal).toFixed(0)} |`;
}

async function alone(db: Database, way: Way): Promise<{ p50: number; p99: number; wal: number }> {
  const keys = freshKeys(KEYS);
  const before = await walPosition(db);
  const times: number[] = [];
  for (const key of keys) {
    const began = performance.now();
    await way.take(key);
    times.push(performance.now() - began);
  }
  const wal = Number((await walPosition(db)) - before) / KEYS;
  const sorted = times.toSorted((a, b) => a - b);
  return { p50: sorted[KEYS >> 1] ?? 0, p99: sorted[Math.floor(KEYS * 0.99)] ?? 0, wal };
}

/** Keys a second, each asked for by one of sixteen. */
async function atOnce(way: Way): Promise<number> {
  const keys = freshKeys(KEYS);
  const began = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (let key = keys.pop(); key !== undefined; key = keys.pop()) await way.take(key);
    }),
  );
  return (KEYS / (performance.now() - began)) * 1_000;
}

/** Until the last of fifty who want one key at the same moment has its answer. */
async function crowded(way: Way): Promise<{ ms: number; winners: number }> {
  const times: number[] = [];
  let winners = 0;
  for (const key of freshKeys(CROWDS)) {
    const began = performance.now();
    const got = await Promise.all(Array.from({ length: CROWD }, () => way.take(key)));
    times.push(performance.now() - began);
    winners += got.filter(Boolean).length;
  }
  return { ms: medianOf(times), winners: winners / CROWDS };
}

function lockWay(name: string, lock: ExpiringLock): Way {
  return { name, take: (key) => lock.take(randomUUID(), 60_000, key) };
}

function uniqueWay(db: Database): Way {
  return {
    name: 'unique constraint',
    async take(key) {
      const { rowCount } = await db.query('insert into public.settled (key) values ($1) on conflict do nothing', [key]);
      return rowCount === 1;
    },
  };
}

/** Admission alone: the run is recorded and decided, the key is its own. */
function openWay(db: Database): Way {
  return { name: 'ledger: open', take: async (key) => (await opened(db, key)) !== null };
}

/** The whole path of an empty period: open, claim, close, and its result stored for every later duplicate. */
function wholeWay(db: Database): Way {
  return {
    name: 'ledger: open, claim, close',
    async take(key) {
      const run = await opened(db, key);
      if (run === null) return false;
      const times = leaseTimes(30_000);
      const request = { key, run, execution: run, pass: 1, release: 'bench', budget: 5, times };
      const hooks = { seal: () => Promise.resolve(), plan: () => Promise.resolve([]) };
      const claimed = await claimAttempt(db, request, hooks);
      if (claimed.kind !== 'granted') throw new Error(`the claim was answered ${claimed.kind}`);
      await closeAction(db, { key, fence: claimed.fence, times }, () => Promise.resolve({}));
      return true;
    },
  };
}

/** What every later start costs once a key is done. */
function duplicateWay(db: Database): Way {
  const done = wholeWay(db);
  const first = 'choices:2999-01-01';
  let isDone: Promise<boolean> | null = null;
  return {
    name: 'ledger: a start of a done key',
    async take() {
      isDone ??= done.take(first);
      await isDone;
      return (await opened(db, first)) !== null;
    },
  };
}

async function opened(db: Database, key: string): Promise<string | null> {
  const run = randomUUID();
  const period = key.slice('choices:'.length);
  const at = `${period}T02:00:00Z`;
  const request: OpenRequest = {
    run: {
      startId: run,
      job: 'choices',
      scheduledAt: at,
      trigger: 'manual',
      actor: 'bench',
      period,
      key,
      overrides: {},
    },
    admission: { fingerprint: '-', ruleVersion: 1, release: 'bench', startWindowMs: 60_000 },
    predecessor: null,
    late: false,
    limits: { runsInFlight: null, backlogEffects: null, backlogOldestSeconds: null },
  };
  const ready = { prepare: () => Promise.resolve(), inspect: () => Promise.resolve({ kind: 'ready' } as const) };
  return (await openRun(db, request, ready)).run.decision === 'admitted' ? run : null;
}

/** Days that nobody has asked for, from 1000-01-01 on. */
function freshKeys(count: number): string[] {
  return Array.from({ length: count }, () => {
    nextDay += 1;
    return `choices:${new Date(Date.UTC(1000, 0, nextDay)).toISOString().slice(0, 'YYYY-MM-DD'.length)}`;
  });
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
