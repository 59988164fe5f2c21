import type { EffectState } from '../src/kernel/transitions.ts';
import { actionByKey } from '../src/store/actions.ts';
import { type EffectCounts, effectCounts, hasMoneyToDeliver } from '../src/store/outbox-read.ts';
import type { ActivityServices } from './services.ts';

/**
 * How far the effects of a key that move money have come: `delivered` when the key is done and each of them has a fate. A
 * receiver of webhooks that is down makes nothing look unpaid.
 */
export interface DeliveryOutput {
  readonly kind: 'delivering' | 'delivered';
  /** Effects by state; null while the relay has some to do, since counting a million rows at each poll helps nobody. */
  readonly effects: EffectCounts | null;
}

const WITHOUT_FATE: readonly EffectState[] = [
  'pending',
  'sending',
  'unknown',
  'pending_external',
  'needs_attention',
  'dead',
];

/**
 * Asks the ledger, which alone knows. A key that is not done, or that a restored database does not have, is not delivered:
 * what waits for a person has no fate either.
 */
export async function deliveryState({ db }: ActivityServices, key: string): Promise<DeliveryOutput> {
  const action = await actionByKey(db, key);
  if (action === null || action.result === null) return { kind: 'delivering', effects: null };
  if (action.delivering && (await hasMoneyToDeliver(db, key))) return { kind: 'delivering', effects: null };
  const effects = await effectCounts(db, key);
  const kind = WITHOUT_FATE.some((state) => effects[state] !== undefined) ? 'delivering' : 'delivered';
  return { kind, effects };
}
