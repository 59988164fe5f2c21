import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Pool } from 'undici';
import { freePort } from '../src/embedded/ports.ts';
import { startPostgres } from '../src/embedded/postgres.ts';
import { createHttpGateway } from '../src/gateway/http.ts';
import { createRegistry } from '../src/jobs/registry.ts';
import { createSettlementJob } from '../src/jobs/settlement/settlement.ts';
import { runRelay } from '../src/relay/relay.ts';
import { type Database, openDatabase } from '../src/store/database.ts';
import { migrate } from '../src/store/migrate.ts';

/**
 * `npx tsx bench/relay.ts [EFFECTS] [PAIRS]`: what the relay delivers a second, against what the same HTTP client sends a
 * second to the same sink without a database, bare and as the http adapter; in one run, alternating. Rows are settlements', with their postings, on a
 * durable PostgreSQL of its own.
 */
const effects = Number(process.argv[2] ?? '5000');
const pairs = Number(process.argv[3] ?? '5');
const connections = 32;

const folder = mkdtempSync(path.join(tmpdir(), 'onceper-bench-'));
chmodSync(folder, 0o755);
const server = await startPostgres({ dir: path.join(folder, 'postgres'), port: await freePort(), durable: true });
const sink = spawn(process.execPath, ['--import', 'tsx', path.join(import.meta.dirname, 'relay-sink.ts')], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  const [line] = (await once(sink.stdout, 'data')) as [Buffer];
  const url = line.toString().trim();
  await migrate(server.url);
  const db = openDatabase({ url: server.url, name: 'relay bench', max: 4 });
  await db.query(
    `with job as (insert into onceper.job (job, active_rule) values ('settlement', 1))
     insert into onceper.rule (job, version, body, loaded_by) values ('settlement', 1, '{}', 'bench')`,
  );
  const ratios: number[] = [];
  const adapterRatios: number[] = [];
  // The first pair warms both ways up and does not count.
  for (let pair = 0; pair <= pairs; pair += 1) {
    const key = await insertKey(db, `${2000 + pair}-09`);
    const bodies = await bodiesOf(db, key);
    const plain = await plainRate(url, bodies);
    const adapter = await adapterRate(url, bodies);
    const relay = await relayRate(db, url, key);
    const isWarmUp = pair === 0;
    if (!isWarmUp) {
      ratios.push(relay / plain);
      adapterRatios.push(relay / adapter);
    }
    const shown = `client ${plain.toFixed(0)}/s, adapter ${adapter.toFixed(0)}/s, relay ${relay.toFixed(0)}/s`;
    process.stdout.write(`${isWarmUp ? 'warm-up' : `pair ${pair}`}: ${shown}\n`);
  }
  process.stdout.write(`relay to client:  ${spread(ratios)}\nrelay to adapter: ${spread(adapterRatios)}\n`);
  await db.close();
} finally {
  sink.kill();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

function spread(ratios: readonly number[]): string {
  const sorted = ratios.toSorted((a, b) => a - b);
  const [median, least, most] = [sorted[sorted.length >> 1], sorted[0], sorted.at(-1)].map((r) => (r ?? 0).toFixed(3));
  return `median ${median}, from ${least} to ${most} over ${pairs} pairs of ${effects}`;
}

/** A closed settlement that waits for its payouts: the action, its lines and its effects. */
async function insertKey(db: Database, period: string): Promise<string> {
  const key = `settlement:${period}`;
  await db.query('update onceper.action set delivering = false where delivering');
  await db.query(
    `insert into settlement.line (key, merchant, currency, period, transactions, sales, refunds, fees, net, carry_in, payout, closing)
     select $1, 'm-' || i, 'GBP', $2, 1, 100 + i, 0, 0, 100 + i, 0, 100 + i, 0 from generate_series(1, $3::int4) i`,
    [key, period, effects],
  );
  await db.query(
    `insert into onceper.outbox (number, key, subject, effect, destination, body, written_by_fence)
     select n.number, $1, 'm-' || i, 'payout', 'bank',
            '{"amount":"' || 100 + i || '","currency":"GBP","destination":"m-' || i || '","reference":"' || n.number || '"}', 1
       from generate_series(1, $2::int4) i, lateral (select $1 || ':m-' || i || ':GBP:payout' as number) n`,
    [key, effects],
  );
  await db.query(
    `insert into onceper.action (key, job, period, state, fence, owner_run, lease_until, fingerprint, overrides, rule_version,
                                 release, delivering, result, done_at)
     values ($1, 'settlement', $2, 'done', 1, 'run-1', clock_timestamp(), '-', '{}', 1, 'bench', true, '{}', clock_timestamp())`,
    [key, period],
  );
  await db.query('vacuum analyze onceper.outbox');
  await db.query('checkpoint');
  return key;
}

async function bodiesOf(db: Database, key: string): Promise<{ readonly number: string; readonly body: string }[]> {
  const { rows } = await db.query<{ number: string; body: string }>(
    'select number, body from onceper.outbox where key = $1',
    [key],
  );
  return rows;
}

/** The client by itself: undici's pool as the http adapter sets it up, each answer read whole. */
async function plainRate(url: string, bodies: { readonly number: string; readonly body: string }[]): Promise<number> {
  const pool = new Pool(url, { connections, pipelining: 1 });
  const began = performance.now();
  let next = 0;
  const sender = async (): Promise<void> => {
    for (let one = bodies[next++]; one !== undefined; one = bodies[next++]) {
      const { body } = await pool.request({
        method: 'POST',
        path: '/v1/transfers',
        headers: { 'content-type': 'application/json', 'idempotency-key': one.number },
        body: one.body,
      });
      await body.text();
    }
  };
  await Promise.all(Array.from({ length: connections }, sender));
  const seconds = (performance.now() - began) / 1_000;
  await pool.close();
  return bodies.length / seconds;
}

/** The http adapter by itself: the client, a bound on each whole call, and the answer checked. */
async function adapterRate(url: string, bodies: { readonly number: string; readonly body: string }[]): Promise<number> {
  const gateway = createHttpGateway({
    url,
    keyWindowMs: 86_400_000,
    visibilityDelayMs: 0,
    timeoutMs: 10_000,
    connections,
  });
  const began = performance.now();
  let next = 0;
  const sender = async (): Promise<void> => {
    for (let one = bodies[next++]; one !== undefined; one = bodies[next++]) {
      const { kind } = await gateway.send(one.number, one.body);
      if (kind !== 'accepted') throw new Error(`the sink answered ${kind}`);
    }
  };
  await Promise.all(Array.from({ length: connections }, sender));
  const seconds = (performance.now() - began) / 1_000;
  await gateway.close();
  return bodies.length / seconds;
}

async function relayRate(db: Database, url: string, key: string): Promise<number> {
  const gateway = createHttpGateway({
    url,
    keyWindowMs: 86_400_000,
    visibilityDelayMs: 0,
    timeoutMs: 10_000,
    connections,
  });
  const stop = new AbortController();
  let recorded = 0;
  const began = performance.now();
  let seconds = Number.NaN;
  await runRelay(
    { db, jobs: createRegistry([createSettlementJob()]), gateway },
    {
      signal: stop.signal,
      concurrency: connections,
      onEvent(event) {
        if (event.kind === 'fault' || event.kind === 'record_failed') throw new Error(event.message);
        if (event.kind === 'recorded') recorded += 1;
        if (recorded < effects || stop.signal.aborted) return;
        seconds = (performance.now() - began) / 1_000;
        stop.abort();
      },
    },
  );
  await gateway.close();
  const { rows } = await db.query<{ paid: number }>(
    `select count(*)::int4 as paid from settlement.posting where key = $1 and kind = 'paid'`,
    [key],
  );
  if (rows[0]?.paid !== effects) throw new Error(`${rows[0]?.paid} of ${effects} were posted`);
  return effects / seconds;
}
