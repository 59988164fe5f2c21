import { expect, test } from 'vitest';
import { runStorm } from './long/storm/run-storm.ts';
import { sizeOf } from './long/storm/sizes.ts';

const SEED = Number(process.env['STORM_SEED'] ?? '7');

test('a short storm over a whole installation breaks no invariant, and all comes to rest', {
  timeout: 300_000,
}, async () => {
  const report = await runStorm({ ...sizeOf(SEED, true), keep: false, tell: () => undefined });
  const { violations, left, kinds, checks } = report;
  expect({ violations, left, folder: report.folder }).toEqual({ violations: [], left: null, folder: report.folder });
  expect(Object.values(kinds).filter(({ hit }) => hit > 0).length).toBeGreaterThanOrEqual(18);
  expect(report.faults).toBeGreaterThanOrEqual(20);
  expect(checks['a number moves money at most once']).toBeGreaterThan(40);
});
