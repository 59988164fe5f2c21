import { ApplicationFailure } from '@temporalio/common';
import { continueAsNew, isCancellation, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { BackfillOutput } from '../activities/backfill.ts';
import { advance } from './options.ts';
import { endOf } from './pass-end.ts';
import { createPoll } from './poll.ts';
import { startBackfillTick } from './start-tick.ts';

/** The backfill to dispatch; `waitMs` only continues a workflow as new. */
export interface BackfillInput {
  readonly id: string;
  readonly waitMs?: number;
}

const WAIT_MS = { first: 500, cap: 15_000 };

/** Looks in one execution, so that its history stays short whatever wakes it. */
const MOST_LOOKS = 50;

/**
 * Dispatches an approved backfill: starts the ticks of its periods as there is room, until every one has ended. It decides
 * nothing and counts nothing: the ledger does both under a lock, so that two dispatchers keep the limit that one does.
 */
export async function backfill(input: BackfillInput): Promise<Pick<BackfillOutput, 'isCancelled'>> {
  const { id } = input;
  const poll = createPoll(input.waitMs, WAIT_MS);
  for (let looks = 0; ; looks += 1) {
    if (looks >= MOST_LOOKS || workflowInfo().continueAsNewSuggested)
      await continueAsNew<typeof backfill>({ id, waitMs: poll.waitMs() });
    poll.begin();
    const found = await tryAdvance(id);
    if (found !== null) {
      for (const start of found.starts) await startBackfillTick(found, start, () => poll.wake());
      setCurrentDetails(detailsOf(id, found));
      if (found.isOver) return { isCancelled: found.isCancelled };
      if (found.ended > 0 || found.starts.length > 0) poll.shorten();
    }
    if (!poll.isWoken()) await poll.nap();
  }
}

/** Null where the ledger can't be asked now: the next look asks again. One that a restored database lacks ends it. */
async function tryAdvance(id: string): Promise<BackfillOutput | null> {
  try {
    return await advance(id);
  } catch (error) {
    if (isCancellation(error)) throw error;
    const end = endOf(error);
    if (end.permanent)
      throw ApplicationFailure.nonRetryable(end.detail ?? 'the backfill can’t go on', end.code ?? 'backfill');
    return null;
  }
}

function detailsOf(id: string, { active, waiting, isOver, isCancelled }: BackfillOutput): string {
  const so = isCancelled ? 'cancelled; ' : '';
  return isOver ? `backfill ${id}: ${so}over` : `backfill ${id}: ${so}${active} under way, ${waiting} wait`;
}
