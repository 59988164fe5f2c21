import { setTimeout as delay } from 'node:timers/promises';
import { spreadOf } from './figures.ts';
import { begin, load, monthOf, print, untilDone, withSettlement } from './settlement-stage.ts';

/**
 * `npx tsx bench/first-slice.ts [TICKS]`: from the start of a tick's workflow to the commit of its first slice, on idle embedded
 * servers, a month of ten merchants for each tick. The commit is seen by another connection that asks every five milliseconds.
 */
const ticks = Number(process.argv[2] ?? '50');
const MERCHANTS = 10;
/** What follows a document (the watcher of its effects starts, the loading's vacuum ends) is over by then: the servers are idle. */
const IDLE_MS = 700;

await withSettlement({ subjectsPerSlice: 500, slicesInFlight: 2 }, async ({ stage }) => {
  const times: number[] = [];
  for (let tick = 1; tick <= ticks; tick += 1) {
    const period = monthOf(tick);
    await load(stage, period, MERCHANTS);
    await delay(IDLE_MS);
    const { startedAt } = await begin(stage, period);
    for (let done = 0; done === 0; await delay(5)) {
      const { rowCount } = await stage.db.query(
        'select from onceper.slice where key = $1 and done_at is not null limit 1',
        [`settlement:${period}`],
      );
      done = rowCount;
      if (done > 0) times.push(performance.now() - startedAt);
    }
    await untilDone(stage, period);
  }
  const { median, least, most } = spreadOf(times);
  const p99 = times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? Number.NaN;
  print(
    `${ticks} ticks: first slice committed after ${median.toFixed(0)} ms (p50), ${p99.toFixed(0)} ms (p99), ${least.toFixed(0)}–${most.toFixed(0)} ms`,
  );
});
