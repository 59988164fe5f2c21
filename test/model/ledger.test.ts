import { expect, test } from 'vitest';
import { planOf, runPlan } from './lanes.ts';

test('the ledger does what its model does, whatever is interrupted, raced, superseded, stopped or asked twice', async () => {
  const plan = planOf(process.env, { sequences: 1_200, longest: 6 });
  const { sequences, met } = await runPlan(plan, 'npx vitest run test/model/ledger.test.ts');
  const unmet = MUST_MEET.filter((one) => !met.has(one));
  if (sequences >= 1_000) expect(unmet, 'what the sequences never came across').toEqual([]);
}, 180_000);

/** Answers that so many sequences can't miss; without them the model would agree about nothing. */
const MUST_MEET = [
  ...['admitted', 'in_progress', 'duplicate', 'conflict', 'held', 'deferred', 'refused'].map((one) => `open ${one}`),
  ...['granted', 'busy', 'superseded', 'done', 'failed', 'refused'].map((one) => `claim ${one}`),
  ...['performed', 'already_done', 'lease_lost', 'crashed'].map((one) => `slice ${one}`),
  ...['done', 'slices_left', 'lease_lost'].map((one) => `close ${one}`),
  ...['again', 'exhausted', 'moved_on'].map((one) => `end ${one}`),
  ...['stopped'].map((one) => `cancel ${one}`),
  ...['stopped', 'slices_finished'].map((one) => `skip ${one}`),
  'release released',
  'renew renewed',
];
