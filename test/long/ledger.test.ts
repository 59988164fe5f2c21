import { expect, test } from 'vitest';
import { planOf, runPlan } from '../model/lanes.ts';
import { unmetOf } from '../model/must-meet.ts';

const HOURS_4 = 4 * 3_600_000;

test(
  'the ledger does what its model does in a hundred thousand sequences',
  async () => {
    const plan = planOf(process.env, { sequences: 100_000, longest: 10 });
    const { sequences, met } = await runPlan(plan, 'npm run test:long -- test/long/ledger.test.ts');
    if (sequences >= 1_000) expect(unmetOf(met, 'long'), 'what the sequences never came across').toEqual([]);
  },
  HOURS_4,
);
