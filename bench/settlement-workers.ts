import { spreadOf } from './figures.ts';
import { emptyTables, load, monthOf, print, settle, timed, withSettlement } from './settlement-stage.ts';

/**
 * `npx tsx bench/settlement-workers.ts [MERCHANTS] [ROUNDS]`: one month by one, two and four worker processes, eight slices in
 * flight each time, so that only the number of processes differs. Every worker is given its month's slices by Temporal.
 */
const merchants = Number(process.argv[2] ?? '200000');
const rounds = Number(process.argv[3] ?? '3');

await withSettlement({ subjectsPerSlice: 5_000, slicesInFlight: 8 }, async ({ stage, workers, startWorker }) => {
  let month = 1;
  for (const count of [1, 2, 4]) {
    while (workers.length < count) await startWorker();
    const seconds: number[] = [];
    for (let round = 0; round <= rounds; round += 1) {
      const period = monthOf(month);
      month += 1;
      await load(stage, period, merchants);
      await emptyTables(stage);
      const measured = await timed(stage, () => settle(stage, period));
      // The first one warms the new workers up.
      if (round > 0) seconds.push(measured.seconds);
    }
    const { median, least, most } = spreadOf(seconds);
    print(
      `${count} workers: ${median.toFixed(2)} s (${least.toFixed(2)}–${most.toFixed(2)}), ${Math.round(merchants / median)} merchants/s`,
    );
  }
});
