import { readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { Stage } from '../src/drills/stage.ts';
import { medianOf, spreadOf } from './figures.ts';
import { settleByHand } from './settlement-floor.ts';
import {
  decisionMs,
  emptyTables,
  load,
  type Measured,
  monthOf,
  phases,
  print,
  type SettlementStage,
  settle,
  timed,
  withSettlement,
} from './settlement-stage.ts';

/**
 * `npx tsx bench/settlement.ts [MERCHANTS] [PAIRS] [SUBJECTS-PER-SLICE] [IN-FLIGHT]`: a month of ten transactions a merchant,
 * from the tick to the document with all effects queued, through Temporal, with fences and slices, against the same rows
 * written by hand; on one durable PostgreSQL, alternating, each pair a month of its own. Then a second run of the last month.
 */
const [merchants = 10_000, pairs = 3, subjectsPerSlice = 10_000, slicesInFlight = 2] = process.argv
  .slice(2)
  .map(Number);

/** A session that is idle tells what it has read ten seconds later (PostgreSQL's PGSTAT_IDLE_INTERVAL). */
const STATISTICS_MS = 12_000;

await withSettlement({ subjectsPerSlice, slicesInFlight }, async (bench) => {
  const { stage } = bench;
  await stopAutovacuum(stage);
  const floors: Measured[] = [];
  const ours: Measured[] = [];
  for (let pair = 1; pair <= pairs; pair += 1) {
    const period = monthOf(pair);
    await load(stage, period, merchants);
    const [floor, own] = await measurePair(stage, period, pair % 2 === 1);
    floors.push(floor);
    ours.push(own);
    print(
      `pair ${pair}: by hand ${shown(floor)}, ours ${shown(own)}, ratio ${(own.seconds / floor.seconds).toFixed(2)}`,
    );
    print(`  ours: ${await phases(stage, period)}`);
  }
  await summary(bench, floors, ours);
  await repeat(bench, monthOf(pairs));
});

/**
 * Autovacuum wakes once a minute and writes 200 B of WAL a merchant where it meets a month that is being written: by chance in the one
 * way or the other. `bench/year.ts` runs beside it.
 */
async function stopAutovacuum({ db }: Stage): Promise<void> {
  for (const table of ['settlement.line', 'settlement.posting', 'onceper.outbox', 'settlement.transaction']) {
    await db.query(`alter table ${table} set (autovacuum_enabled = off)`);
  }
}

/** The month both ways on empty tables; a comparison of speeds is worth nothing unless both wrote the same rows. */
async function measurePair(stage: Stage, period: string, isOursFirst: boolean): Promise<[Measured, Measured]> {
  const own = async () => {
    await emptyTables(stage);
    const measured = await timed(stage, () => settle(stage, period));
    return { measured, rows: await writtenRows(stage) };
  };
  const byHand = async () => {
    await emptyTables(stage);
    const measured = await timed(stage, () => settleByHand(stage.db, `settlement:${period}`, period));
    return { measured, rows: await writtenRows(stage) };
  };
  const first = isOursFirst ? await own() : await byHand();
  const second = isOursFirst ? await byHand() : await own();
  if (first.rows !== second.rows) throw new Error(`the rows differ: ${first.rows} and ${second.rows}`);
  return isOursFirst ? [second.measured, first.measured] : [first.measured, second.measured];
}

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

/** Further runs of the finished month: how long each takes to be decided at the database, and whether one read any line. */
async function repeat({ stage, workers }: SettlementStage, period: string): Promise<void> {
  // What a worker reads meanwhile, to watch deliveries, would count too.
  await Promise.all(workers.map((worker) => worker.stop()));
  const reads = async () => {
    const { rows } = await stage.db.query<{ reads: string }>(
      `select sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::text as reads from pg_stat_user_tables
        where (schemaname, relname) in (('settlement', 'line'), ('settlement', 'posting'), ('onceper', 'outbox'))`,
    );
    return rows[0]?.reads;
  };
  await delay(STATISTICS_MS);
  const before = await reads();
  const times: number[] = [];
  for (let run = 0; run < 11; run += 1) {
    const { ms, decision } = await decisionMs(stage, period);
    if (decision !== 'duplicate') throw new Error(`a second run was ${decision}`);
    times.push(ms);
  }
  await delay(STATISTICS_MS);
  const { median, most } = spreadOf(times);
  const untouched = (await reads()) === before ? 'no line, posting or effect read' : 'LINES WERE READ';
  print(
    `a duplicate run of the month: ${median.toFixed(1)} ms (at most ${most.toFixed(1)}) at the database, ${untouched}`,
  );
}

async function summary({ stage, workers }: SettlementStage, floors: Measured[], ours: Measured[]): Promise<void> {
  const ratio = spreadOf(ours.map((own, at) => own.seconds / (floors[at]?.seconds ?? 1)));
  const seconds = medianOf(ours.map((one) => one.seconds)) / medianOf(floors.map((one) => one.seconds));
  const wal = medianOf(ours.map((one) => one.wal)) / medianOf(floors.map((one) => one.wal));
  const { rows } = await stage.db.query<{ temp: string }>(
    `select temp_bytes::text as temp from pg_stat_database where datname = current_database()`,
  );
  const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${workers[0]?.pid}/status`, 'utf8'))?.[1];
  print(
    `${merchants} merchants, ${ours.length} pairs: ratio of medians ${seconds.toFixed(2)} (${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)}), WAL ratio ${wal.toFixed(2)}`,
  );
  print(
    `worker's peak memory ${Math.round(Number(peak) / 1024)} MB; temporary files ${Math.round(Number(rows[0]?.temp) / 1e6)} MB; ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}`,
  );
}

function shown(one: Measured): string {
  return `${one.seconds.toFixed(2)} s (${Math.round(one.wal / merchants)} B WAL a merchant)`;
}
