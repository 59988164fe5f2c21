import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '../src/embedded/ports.ts';
import { startPostgres } from '../src/embedded/postgres.ts';
import { createHttpGateway } from '../src/gateway/http.ts';
import type { Gateway } from '../src/gateway/port.ts';
import { createRegistry } from '../src/jobs/registry.ts';
import { createSettlementJob } from '../src/jobs/settlement/settlement.ts';
import { runRelay } from '../src/relay/relay.ts';
import { type Database, openDatabase } from '../src/store/database.ts';
import { migrate } from '../src/store/migrate.ts';
import { PAST_GUARDS } from '../test/support/forced.ts';
import { spreadOf } from './figures.ts';

/** Calls in flight, of the relay and of whatever it is compared with. */
export const CONNECTIONS = 32;

/**
 * Runs `work` with a durable PostgreSQL of its own, migrated and with the job, and with a sink's address; takes both away
 * afterwards, whatever happens.
 */
export async function withLedgerAndSink(work: (db: Database, url: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'onceper-bench-'));
  chmodSync(folder, 0o755);
  const server = await startPostgres({ dir: path.join(folder, 'postgres'), port: await freePort(), durable: true });
  try {
    await migrate(server.url);
    const db = openDatabase({ url: server.url, name: 'relay bench', max: 4 });
    await db.query(
      `with job as (insert into onceper.job (job, active_rule) values ('settlement', 1))
       insert into onceper.rule (job, version, body, loaded_by) values ('settlement', 1, '{}', 'bench')`,
    );
    await withSink((url) => work(db, url));
    await db.close();
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs `work` with the address of a sink that answers at once, in a process of its own. */
export async function withSink(work: (url: string) => Promise<void>): Promise<void> {
  const sink = spawn(process.execPath, ['--import', 'tsx', path.join(import.meta.dirname, 'relay-sink.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await work(await addressOf(sink));
  } finally {
    sink.kill();
  }
}

async function addressOf(sink: ChildProcess): Promise<string> {
  if (sink.stdout === null) throw new Error('the sink has no output');
  const [line] = (await once(sink.stdout, 'data')) as [Buffer];
  return line.toString().trim();
}

/** The http adapter with the relay's connections. */
export function gatewayTo(url: string): Gateway {
  return createHttpGateway({
    url,
    keyWindowMs: 86_400_000,
    visibilityDelayMs: 0,
    timeoutMs: 10_000,
    connections: CONNECTIONS,
  });
}

/** A closed settlement that waits for its payouts: the action, its lines and its effects. */
export async function insertKey(db: Database, period: string, effects: number): Promise<string> {
  const key = `settlement:${period}`;
  await db.query('update onceper.action set delivering = false where delivering');
  await db.query(
    `insert into settlement.line (key, merchant, currency, period, transactions, sales, refunds, fees, net, carry_in, payout, closing)
     select $1, 'm-' || i, 'GBP', $2, 1, 100 + i, 0, 0, 100 + i, 0, 100 + i, 0 from generate_series(1, $3::int4) i`,
    [key, period, effects],
  );
  await db.query(
    `with ${PAST_GUARDS}
     insert into onceper.outbox (number, key, subject, effect, destination, body, written_by_fence)
     select n.number, $1, 'm-' || i, 'payout', 'bank',
            '{"amount":"' || 100 + i || '","currency":"GBP","destination":"m-' || i || '","reference":"' || n.number || '"}', 1
       from past, generate_series(1, $2::int4) i, lateral (select $1 || ':m-' || i || ':GBP:payout' as number) n`,
    [key, effects],
  );
  await db.query(
    `with ${PAST_GUARDS}
     insert into onceper.action (key, job, period, state, fence, owner_run, lease_until, fingerprint, overrides, rule_version,
                                 release, delivering, result, done_at, period_ends)
     select $1, 'settlement', $2, 'done', 1, 'run-1', clock_timestamp(), '-', '{}', 1, 'bench', true, '{}', clock_timestamp(), clock_timestamp() from past`,
    [key, period],
  );
  await db.query('vacuum analyze onceper.outbox');
  await db.query('checkpoint');
  return key;
}

/**
 * Effects a second of one relay that delivers all of a key, from its start until the last is recorded. Calls `onTaken` after
 * each take. Throws when the relay reports a fault, or when not every payout was posted.
 */
export async function relayRate(
  db: Database,
  url: string,
  key: string,
  effects: number,
  onTaken: () => void = () => undefined,
): Promise<number> {
  const gateway = gatewayTo(url);
  const stop = new AbortController();
  let recorded = 0;
  const began = performance.now();
  let seconds = Number.NaN;
  await runRelay(
    { db, jobs: createRegistry([createSettlementJob()]), gateway },
    {
      signal: stop.signal,
      concurrency: CONNECTIONS,
      onEvent(event) {
        if (event.kind === 'fault' || event.kind === 'record_failed') throw new Error(event.message);
        if (event.kind === 'taken') onTaken();
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

/** The median of some figures, with the least and the most. */
export function spread(figures: readonly number[]): string {
  const { median, least, most } = spreadOf(figures);
  const [middle, low, high] = [median, least, most].map((figure) => figure.toFixed(3));
  return `median ${middle}, from ${low} to ${high}`;
}
