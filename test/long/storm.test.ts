import { expect, test } from 'vitest';
import { runStorm } from './storm/run-storm.ts';
import { sizeOf } from './storm/sizes.ts';

const SEEDS = Number(process.env['STORM_SEEDS'] ?? '10');

test.each(Array.from({ length: SEEDS }, (_, at) => at + 1))(
  'three hundred faults of seed %i break no invariant, every kind hits, and all comes to rest',
  { timeout: 1_800_000 },
  async (seed) => {
    const report = await runStorm({ ...sizeOf(seed, false), keep: false, tell: () => undefined });
    const { violations, left, neverHit, folder } = report;
    expect({ violations, left, neverHit, folder }).toEqual({ violations: [], left: null, neverHit: [], folder });
    expect(report.faults).toBeGreaterThanOrEqual(250);
  },
);
