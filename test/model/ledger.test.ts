import { randomInt } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { planOf, runLanes } from './lanes.ts';

const COMMAND = 'npx vitest run test/model/ledger.test.ts';

test('the ledger does what its model does, whatever is interrupted, raced, superseded, stopped or asked twice', async () => {
  const plan = planOf(process.env, 2_000, randomInt(2 ** 30));
  // The process's clock is decades behind: whoever judged a lease by it would take every one for live.
  vi.useFakeTimers({ toFake: ['Date'], now: new Date('1999-12-31T00:00:00Z') });
  try {
    const began = performance.now();
    const { sequences, met } = await runLanes(plan, COMMAND);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    process.stdout.write(`model: ${sequences} sequences in ${seconds} s, MODEL_SEED=${plan.seed}\n`);
    const unmet = MUST_MEET.filter((one) => !met.has(one));
    if (sequences >= 1_000) expect(unmet, 'what the sequences never came across').toEqual([]);
  } finally {
    vi.useRealTimers();
  }
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
