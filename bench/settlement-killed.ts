import type { Stage } from '../src/drills/stage.ts';
import { until } from '../src/drills/until.ts';
import {
  begin,
  emptyTables,
  load,
  monthOf,
  print,
  settle,
  timed,
  untilDone,
  withSettlement,
} from './settlement-stage.ts';

/**
 * `npx tsx bench/settlement-killed.ts [MERCHANTS]`: a month undisturbed, and one whose worker is killed with SIGKILL when half of
 * the slices are done; another worker is started at once. What the kill costs is the rest of the dead holder's lease, until
 * the next attempt begins, and the slices that were in flight. Wanted: without that wait at most 1.15 of the undisturbed month,
 * no finished slice done again, one document.
 */
const merchants = Number(process.argv[2] ?? '1000000');

await withSettlement({ subjectsPerSlice: 10_000, slicesInFlight: 2 }, async ({ stage, workers, startWorker }) => {
  const undisturbed = monthOf(1);
  await load(stage, undisturbed, merchants);
  await emptyTables(stage);
  const calm = await timed(stage, () => settle(stage, undisturbed));
  print(`undisturbed: ${calm.seconds.toFixed(1)} s`);

  const killed = monthOf(2);
  await load(stage, killed, merchants);
  await emptyTables(stage);
  let killedAt = 0;
  const whole = await timed(stage, async () => {
    await begin(stage, killed);
    await until('half of the slices', async () => (await sliceShare(stage, killed)) >= 0.5, 1_800_000);
    killedAt = Date.now();
    await workers[0]?.kill();
    await startWorker();
    await untilDone(stage, killed);
  });
  const after = await afterwards(stage, killed);
  const wait = (Date.parse(after.resumedAt) - killedAt) / 1_000;
  const ratio = (whole.seconds - wait) / calm.seconds;
  print(
    `killed in the middle: ${whole.seconds.toFixed(1)} s, of which ${wait.toFixed(1)} s until the next attempt began`,
  );
  print(`without that wait ${ratio.toFixed(2)} of the undisturbed month`);
  print(`slices by fence: ${after.slices}; documents: ${after.documents}; payouts of the month: ${after.effects}`);
});

async function sliceShare(stage: Stage, period: string): Promise<number> {
  const { rows } = await stage.db.query<{ share: number }>(
    'select coalesce(count(done_at)::float8 / nullif(count(*), 0), 0) as share from onceper.slice where key = $1',
    [`settlement:${period}`],
  );
  return rows[0]?.share ?? 0;
}

interface Afterwards {
  readonly resumedAt: string;
  readonly slices: string;
  readonly documents: number;
  readonly effects: number;
}

async function afterwards(stage: Stage, period: string): Promise<Afterwards> {
  const { rows } = await stage.db.query<Afterwards>(
    `select (select to_char(max(started_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
               from onceper.attempt where key = $1) as "resumedAt",
            (select string_agg(fence || ': ' || n, ', ' order by fence)
               from (select fence, count(*) as n from onceper.slice where key = $1 group by fence) f) as slices,
            (select count(*)::int4 from settlement.document where key = $1) as documents,
            (select count(*)::int4 from onceper.outbox where key = $1) as effects`,
    [`settlement:${period}`],
  );
  if (rows[0] === undefined) throw new Error('no row');
  return rows[0];
}
