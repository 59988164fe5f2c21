import { expect, test } from 'vitest';
import { planOf, runPlan } from './lanes.ts';
import { unmetOf } from './must-meet.ts';

/** test/long/ledger.test.ts runs a hundred thousand, and longer ones. */
const SEQUENCES = 400;

test('the ledger does what its model does, whatever is interrupted, raced, superseded, stopped or asked twice', async () => {
  const plan = planOf(process.env, { sequences: SEQUENCES, longest: 6 });
  const { sequences, met } = await runPlan(plan, 'npx vitest run test/model/ledger.test.ts');
  if (sequences >= SEQUENCES) expect(unmetOf(met, 'short'), 'what the sequences never came across').toEqual([]);
}, 180_000);
