import { test } from 'vitest';
import { planOf, runPlan } from '../model/lanes.ts';

const HOURS_4 = 4 * 3_600_000;

test(
  'the ledger does what its model does in a hundred thousand sequences',
  async () => {
    const plan = planOf(process.env, { sequences: 100_000, longest: 10 });
    await runPlan(plan, 'npm run test:long -- test/long/ledger.test.ts');
  },
  HOURS_4,
);
