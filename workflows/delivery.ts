import { continueAsNew, isCancellation, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { DeliveryOutput } from '../activities/delivery.ts';
import { deliveryState } from './options.ts';
import { createPoll } from './poll.ts';
import { showState } from './search-attributes.ts';

/** The key whose effects are watched; `waitMs` only continues a workflow as new. */
export interface DeliveryInput {
  readonly key: string;
  readonly waitMs?: number;
}

const WAIT_MS = { first: 1_000, cap: 60_000 };

/**
 * Waits until every effect of a key has a fate, and keeps OnceperState true meanwhile: `delivering`, then `delivered`. It
 * holds no lease and moves nothing, so the relay delivers whether or not it runs.
 */
export async function delivery(input: DeliveryInput): Promise<DeliveryOutput> {
  const { key } = input;
  const poll = createPoll(input.waitMs, WAIT_MS);
  for (;;) {
    poll.begin();
    const found = await tryToLook(key);
    if (found?.kind === 'delivered') {
      showState('delivered', `${key}: every effect has a fate`);
      return found;
    }
    setCurrentDetails(detailsOf(key, found));
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof delivery>({ key, waitMs: poll.waitMs() });
    await poll.nap();
  }
}

/** Null where the ledger can't be asked now: the next poll asks again. */
async function tryToLook(key: string): Promise<DeliveryOutput | null> {
  try {
    return await deliveryState(key);
  } catch (error) {
    if (isCancellation(error)) throw error;
    return null;
  }
}

function detailsOf(key: string, found: DeliveryOutput | null): string {
  if (found === null) return `${key}: the ledger can't be asked now`;
  if (found.effects === null) return `${key}: the relay has effects to deliver`;
  const counts = Object.entries(found.effects).map(([state, count]) => `${count} ${state.replaceAll('_', ' ')}`);
  return `${key}: ${counts.join(', ')}`;
}
