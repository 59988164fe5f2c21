import {
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { DeliveryOutput } from '../activities/delivery.ts';
import { deliveryState } from './options.ts';
import { showState } from './search-attributes.ts';

/** The key whose effects are watched; `waitMs` only continues a workflow as new. */
export interface DeliveryInput {
  readonly key: string;
  readonly waitMs?: number;
}

/** Asks the watcher to look at once instead of at its next poll. It only wakes: what is true stands in the ledger. */
const wakeSignal = defineSignal('wake');

const WAIT_MS = { first: 1_000, cap: 60_000 };

/**
 * Waits until every effect of a key has a fate, and keeps OnceperState true meanwhile: `delivering`, then `delivered`. It
 * holds no lease and moves nothing, so the relay delivers whether or not it runs.
 */
export async function delivery(input: DeliveryInput): Promise<DeliveryOutput> {
  const { key } = input;
  let waitMs = input.waitMs ?? WAIT_MS.first;
  let isWoken = false;
  setHandler(wakeSignal, () => {
    isWoken = true;
  });
  for (;;) {
    isWoken = false;
    const found = await tryToLook(key);
    if (found?.kind === 'delivered') {
      showState('delivered', `${key}: every effect has a fate`);
      return found;
    }
    setCurrentDetails(detailsOf(key, found));
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof delivery>({ key, waitMs });
    const woken = await condition(() => isWoken, waitMs);
    waitMs = woken ? WAIT_MS.first : Math.min(WAIT_MS.cap, waitMs * 2);
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
