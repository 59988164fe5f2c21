import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import path from 'node:path';
import { importSample } from '../src/drills/sample-month.ts';
import { type Stage, setStage } from '../src/drills/stage.ts';
import { startRun } from '../src/drills/start-run.ts';
import { until } from '../src/drills/until.ts';
import { freePort } from '../src/embedded/ports.ts';
import { createRegistry } from '../src/jobs/registry.ts';
import { createSettlementJob } from '../src/jobs/settlement/settlement.ts';
import { medianOf, walPosition } from './figures.ts';
import { settleByHand } from './settlement-floor.ts';

/**
 * `npx tsx bench/settlement.ts [MERCHANTS] [PAIRS] [SUBJECTS-PER-SLICE] [IN-FLIGHT]`: a month of ten transactions a merchant, from the tick to the document
 * with all effects queued, through Temporal, with fences and slices, against the same rows written by hand; on one durable
 * PostgreSQL, alternating, each pair a month of its own.
 */
const [merchants = 10_000, pairs = 3, subjectsPerSlice = 2_000, slicesInFlight = 2] = process.argv.slice(2).map(Number);
const FIRST = '2001-01';

interface Measured {
  readonly seconds: number;
  readonly wal: number;
}

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
  await measure(stage);
} finally {
  await stage.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function measure(stage: Stage): Promise<void> {
  await importSample(stage, {
    merchants: 3,
    months: 1,
    subjectsPerSlice,
    last: FIRST,
    rule: { zone: 'UTC', slicesInFlight, leaseSeconds: 30 },
  });
  await stage.startGateway();
  const worker = await stage.start('worker');
  await settle(stage, FIRST);
  const floors: Measured[] = [];
  const ours: Measured[] = [];
  for (let pair = 1; pair <= pairs; pair += 1) {
    const period = `2001-${String(pair + 1).padStart(2, '0')}`;
    await load(stage, period);
    const sums: string[] = [];
    const byHand = () => timed(stage, () => settleByHand(stage.db, `settlement:${period}`, period));
    const byUs = () => timed(stage, () => settle(stage, period));
    for (const [list, act] of pair % 2 === 1
      ? ([
          [ours, byUs],
          [floors, byHand],
        ] as const)
      : ([
          [floors, byHand],
          [ours, byUs],
        ] as const)) {
      await emptyTables(stage);
      list.push(await act());
      sums.push(await writtenRows(stage));
    }
    print(`  ours: ${await phases(stage, period)}`);
    if (sums[0] !== sums[1]) throw new Error(`the rows differ: ${sums.join(' and ')}`);
    const [floor, own] = [floors.at(-1), ours.at(-1)];
    print(
      `pair ${pair}: by hand ${shown(floor)}, ours ${shown(own)}, ratio ${((own?.seconds ?? 0) / (floor?.seconds ?? 1)).toFixed(2)}`,
    );
  }
  const ratios = ours.map((own, at) => own.seconds / (floors[at]?.seconds ?? 1)).toSorted((a, b) => a - b);
  const wal = medianOf(ours.map((one) => one.wal)) / medianOf(floors.map((one) => one.wal));
  const { rows } = await stage.db.query<{ temp: string }>(
    `select temp_bytes::text as temp from pg_stat_database where datname = current_database()`,
  );
  const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${worker.pid}/status`, 'utf8'))?.[1];
  print(
    `ratio of medians ${(medianOf(ours.map((one) => one.seconds)) / medianOf(floors.map((one) => one.seconds))).toFixed(3)} (pairs ${ratios.map((r) => r.toFixed(2)).join(', ')}), WAL ratio ${wal.toFixed(3)}`,
  );
  print(
    `worker's peak memory ${Math.round(Number(peak) / 1024)} MB; temporary files ${Math.round(Number(rows[0]?.temp) / 1e6)} MB; ${cpus().length} cores`,
  );
}

/** Ten transactions a merchant, one in twenty a refund, in id order, as if imported. */
async function load(stage: Stage, period: string): Promise<void> {
  await stage.db.query(
    `insert into settlement.transaction (source, id, merchant, currency, amount, occurred_on, period, import_id)
     select 'bench', $1 || '-' || lpad(((m - 1) * 10 + n)::text, 9, '0'), 'm-' || lpad(m::text, 8, '0'), 'GBP',
            case when (m * 10 + n) % 20 = 0 then -(500 + (m * 7 + n) % 900) else 500 + (m * 7919 + n * 104729) % 20000 end,
            ($1 || '-01')::date + n, $1, 1
       from generate_series(1, $2::int8) m cross join generate_series(1, 10) n`,
    [period, merchants],
  );
  await stage.db.query(
    `insert into settlement.merchant (id, source, name)
     select 'm-' || lpad(m::text, 8, '0'), 'bench', 'Merchant ' || m from generate_series(1, $1::int8) m
         on conflict do nothing`,
    [merchants],
  );
  await stage.db.query(
    'vacuum analyze settlement.merchant, settlement.transaction, settlement.line, settlement.posting, onceper.outbox',
  );
}

/** From the tick's start to the document. */
async function settle(stage: Stage, period: string): Promise<void> {
  const key = `settlement:${period}`;
  await startRun(stage, { registry: createRegistry([createSettlementJob()]), months: [], last: period, key });
  await until(
    `${key} to be done`,
    async () => {
      const { rows } = await stage.db.query<{ state: string }>('select state from onceper.action where key = $1', [
        key,
      ]);
      return rows[0]?.state === 'done';
    },
    1_800_000,
    20,
  );
}

async function timed(stage: Stage, act: () => Promise<unknown>): Promise<Measured> {
  const before = await walPosition(stage.db);
  const began = performance.now();
  await act();
  const seconds = (performance.now() - began) / 1_000;
  return { seconds, wal: Number((await walPosition(stage.db)) - before) };
}

/** Each way begins with empty tables and indexes: after the other's rows its own would be appended or squeezed in between. */
async function emptyTables(stage: Stage): Promise<void> {
  await stage.db.query('truncate settlement.line, settlement.posting, onceper.outbox, onceper.delivery');
  await stage.db.query('checkpoint');
}

/** A comparison of speeds is worth nothing unless both wrote the same rows. */
async function writtenRows(stage: Stage): Promise<string> {
  const { rows } = await stage.db.query<Record<string, string>>(
    `select (select concat_ws(' ', count(*), sum(hashtextextended(concat_ws('|', l.*), 0))) from settlement.line l) as lines,
            (select concat_ws(' ', count(*), sum(hashtextextended(concat_ws('|', key, merchant, currency, kind, debit, credit, amount), 0)))
               from settlement.posting) as postings,
            (select concat_ws(' ', count(*), sum(hashtextextended(concat_ws('|', number, key, subject, effect, destination, body), 0)))
               from onceper.outbox) as effects`,
  );
  return JSON.stringify(rows[0]);
}

/** Where the time of a run went, in seconds from its decision. */
async function phases(stage: Stage, period: string): Promise<string> {
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

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function shown(one: Measured | undefined): string {
  return `${one?.seconds.toFixed(2)} s (${Math.round((one?.wal ?? 0) / merchants)} B WAL a merchant)`;
}
