import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openStart } from '../activities/open.ts';
import type { ActivityServices } from '../activities/services.ts';
import type { Child } from '../src/drills/children.ts';
import { importSample } from '../src/drills/sample-month.ts';
import { type Stage, setStage } from '../src/drills/stage.ts';
import { until } from '../src/drills/until.ts';
import { freePort } from '../src/embedded/ports.ts';
import { createRegistry } from '../src/jobs/registry.ts';
import { createSettlementJob } from '../src/jobs/settlement/settlement.ts';
import { planRun, startRun } from '../src/ops/run.ts';
import { walPosition } from './figures.ts';

/** The first month, of three merchants: it warms the worker up, and the months that are measured come after it. */
const FIRST = '2001-01';
const LEASE_SECONDS = 30;
const REGISTRY = createRegistry([createSettlementJob()]);

/** Servers of their own, durable, and a worker that has settled a month already. */
export interface SettlementStage {
  readonly stage: Stage;
  /** The workers that were started, the first one first. */
  readonly workers: readonly Child[];
  readonly startWorker: () => Promise<Child>;
}

/** What one way of settling a month took. */
export interface Measured {
  readonly seconds: number;
  readonly wal: number;
}

const UNLIMITED = { runsInFlight: null, backlogEffects: null, backlogOldestSeconds: null };

/** Runs `work` on a stage whose rule has so many slices in flight and so many merchants a slice; nothing is left behind. */
export async function withSettlement(
  rule: { readonly subjectsPerSlice: number; readonly slicesInFlight: number },
  work: (bench: SettlementStage) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'onceper-settlement-'));
  chmodSync(folder, 0o755);
  const stage = await setStage({
    folder: path.join(folder, 'stage'),
    databaseUrl: null,
    temporalAddress: null,
    temporalCli: {
      explicit: process.env['TEMPORAL_CLI'] ?? null,
      path: process.env['PATH'] ?? '',
      cacheDir: path.join(process.env['XDG_CACHE_HOME'] ?? path.join(process.env['HOME'] ?? '', '.cache'), 'onceper'),
    },
    ports: { postgres: await freePort(), temporal: await freePort(), ui: await freePort() },
    environment: { ...process.env, NO_COLOR: '1' } as Record<string, string>,
    taskQueue: 'onceper',
    actor: 'os:bench',
  });
  try {
    await importSample(stage, {
      merchants: 3,
      months: 1,
      subjectsPerSlice: rule.subjectsPerSlice,
      last: FIRST,
      // No relay delivers what is measured here: a backlog is no reason to wait.
      rule: { zone: 'UTC', slicesInFlight: rule.slicesInFlight, leaseSeconds: LEASE_SECONDS, limits: UNLIMITED },
    });
    await stage.startGateway();
    const workers: Child[] = [];
    const startWorker = async () => {
      const worker = await stage.start('worker');
      workers.push(worker);
      return worker;
    };
    await startWorker();
    await settle(stage, FIRST);
    await work({ stage, workers, startWorker });
  } finally {
    await stage.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The name of the nth month that is measured, from 1. */
export function monthOf(nth: number): string {
  return `${2001 + Math.floor(nth / 12)}-${String((nth % 12) + 1).padStart(2, '0')}`;
}

/** Ten transactions a merchant, one in twenty a refund, in id order, as if imported; every table of the job is vacuumed. */
export async function load(stage: Stage, period: string, merchants: number): Promise<void> {
  await loadOnly(stage, period, merchants);
  await stage.db.query('vacuum analyze settlement.line, settlement.posting, onceper.outbox');
}

/** The same, and what a settlement and its deliveries leave behind is left to autovacuum. */
export async function loadOnly({ db }: Stage, period: string, merchants: number): Promise<void> {
  await db.query(
    `insert into settlement.transaction (source, id, merchant, currency, amount, occurred_on, period, import_id)
     select 'bench', $1 || '-' || lpad(((m - 1) * 10 + n)::text, 9, '0'), 'm-' || lpad(m::text, 8, '0'), 'GBP',
            case when (m * 10 + n) % 20 = 0 then -(500 + (m * 7 + n) % 900) else 500 + (m * 7919 + n * 104729) % 20000 end,
            ($1 || '-01')::date + n, $1, 1
       from generate_series(1, $2::int8) m cross join generate_series(1, 10) n`,
    [period, merchants],
  );
  await db.query(
    `insert into settlement.merchant (id, source, name)
     select 'm-' || lpad(m::text, 8, '0'), 'bench', 'Merchant ' || m from generate_series(1, $1::int8) m
         on conflict do nothing`,
    [merchants],
  );
  await db.query('vacuum analyze settlement.merchant, settlement.transaction');
}

/** Plans the month's run and starts its tick, as `npx onceper run` does; returns when the tick was started. */
export async function begin(stage: Stage, period: string): Promise<{ readonly startedAt: number }> {
  const { db, client, actor, taskQueue } = stage;
  const when = { kind: 'period', period } as const;
  const planned = await planRun(db, REGISTRY, { job: 'settlement', when, overrides: {} });
  const startedAt = performance.now();
  await startRun(db, client, planned, { actor, taskQueue });
  return { startedAt };
}

/** From the tick's start to the document, with all effects queued. */
export async function settle(stage: Stage, period: string): Promise<void> {
  await begin(stage, period);
  await untilDone(stage, period);
}

/** How long a further run of a month takes to be decided at the database, in milliseconds: the activity that opens it. */
export async function decisionMs(
  { db }: Stage,
  period: string,
): Promise<{ readonly ms: number; readonly decision: string }> {
  const when = { kind: 'period', period } as const;
  const { id, job, scheduledAt } = await planRun(db, REGISTRY, { job: 'settlement', when, overrides: {} });
  const services: ActivityServices = {
    db,
    renewals: db,
    registry: REGISTRY,
    release: 'bench',
    log: () => undefined,
    statusOfWorkflow: () => Promise.resolve(null),
    scheduleState: () => Promise.resolve('missing'),
    topUpSchedule: () => Promise.resolve('none'),
    askForLook: () => Promise.resolve(),
    anchor: () => {
      throw new Error('a duplicate is not audited');
    },
    draining: new AbortController().signal,
  };
  const began = performance.now();
  const opened = await openStart(services, {
    startId: id,
    job,
    scheduledAt,
    door: 'run',
    actor: 'os:bench',
    overrides: {},
  });
  return { ms: performance.now() - began, decision: opened.decision };
}

export async function untilDone(stage: Stage, period: string): Promise<void> {
  const key = `settlement:${period}`;
  const isDone = async () => {
    const { rowCount } = await stage.db.query(`select from onceper.action where key = $1 and state = 'done'`, [key]);
    return rowCount === 1;
  };
  await until(`${key} to be done`, isDone, 1_800_000);
}

export async function timed(stage: Stage, act: () => Promise<unknown>): Promise<Measured> {
  const before = await walPosition(stage.db);
  const began = performance.now();
  await act();
  const seconds = (performance.now() - began) / 1_000;
  return { seconds, wal: Number((await walPosition(stage.db)) - before) };
}

/** Each way begins with empty tables and indexes: after another's rows its own would be appended or squeezed in between. */
export async function emptyTables(stage: Stage): Promise<void> {
  await stage.db.query('truncate settlement.line, settlement.posting, onceper.outbox, onceper.delivery');
  await stage.db.query('checkpoint');
}

/** Where the time of a run went, in seconds from its decision. */
export async function phases(stage: Stage, period: string): Promise<string> {
  const { rows } = await stage.db.query<Record<string, string>>(
    `select round(extract(epoch from a.sealed_at - r.opened_at), 2)::text as "seal and plan",
            round(extract(epoch from (select max(done_at) from onceper.slice s where s.key = a.key) - a.sealed_at), 2)::text as "slices begun",
            round(extract(epoch from d.closed_at - r.opened_at), 2)::text as document
       from onceper.action a
       join onceper.run r on r.start_id = a.owner_run
       join settlement.document d on d.key = a.key
      where a.key = $1`,
    [`settlement:${period}`],
  );
  return Object.entries(rows[0] ?? {})
    .map(([name, value]) => `${name} ${value} s`)
    .join(', ');
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
