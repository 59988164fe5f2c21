import type { Stage } from '../src/drills/stage.ts';
import { cleanOutbox } from '../src/ops/outbox-clean.ts';
import { relayRate, withSink } from './relay-ledger.ts';
import { loadOnly, monthOf, print, settle, timed, withSettlement } from './settlement-stage.ts';

/**
 * `npx tsx bench/year.ts [MERCHANTS] [MONTHS]`: month after month settled and delivered in one database whose tables only grow, with
 * PostgreSQL's own autovacuum and nothing else. Wanted: the last month takes as long as the first, and dead rows stay a share of
 * one month. Then the deliveries of the whole time are cleaned, in bounded batches.
 */
const merchants = Number(process.argv[2] ?? '50000');
const months = Number(process.argv[3] ?? '12');
const TABLES = [
  'settlement.transaction',
  'settlement.line',
  'settlement.posting',
  'onceper.outbox',
  'onceper.delivery',
];

await withSettlement({ subjectsPerSlice: 10_000, slicesInFlight: 2 }, ({ stage }) =>
  withSink(async (sink) => {
    for (let month = 1; month <= months; month += 1) {
      const period = monthOf(month);
      await loadOnly(stage, period, merchants);
      const settled = await timed(stage, () => settle(stage, period));
      const rate = await relayRate(stage.db, sink, `settlement:${period}`, await payoutsOf(stage, period));
      print(
        `${period}: settled in ${settled.seconds.toFixed(2)} s, delivered at ${rate.toFixed(0)}/s; ${await sizes(stage)}`,
      );
    }
    const before = performance.now();
    const { deleted } = await cleanOutbox(stage.db, { olderMs: 0 });
    print(
      `${deleted} deliveries cleaned in ${((performance.now() - before) / 1_000).toFixed(1)} s; ${await sizes(stage)}`,
    );
    await stage.db.query(`vacuum ${TABLES.join(', ')}`);
    print(`after a vacuum: ${await sizes(stage)}`);
  }),
);

async function payoutsOf({ db }: Stage, period: string): Promise<number> {
  const { rows } = await db.query<{ payouts: number }>(
    'select count(*)::int4 as payouts from onceper.outbox where key = $1',
    [`settlement:${period}`],
  );
  return rows[0]?.payouts ?? 0;
}

/** Megabytes of each table with its indexes, and how many of its rows are dead. */
async function sizes({ db }: Stage): Promise<string> {
  const { rows } = await db.query<{ name: string; mb: number; dead: bigint }>(
    `select s.relname as name, (pg_total_relation_size(s.relid) / 1048576)::int4 as mb, s.n_dead_tup as dead
       from unnest($1::text[]) with ordinality as wanted (name, place)
       join pg_stat_user_tables s on s.relid = wanted.name::regclass
      order by wanted.place`,
    [TABLES],
  );
  return rows.map(({ name, mb, dead }) => `${name} ${mb} MB (${dead} dead)`).join(', ');
}
