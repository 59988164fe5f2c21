import type { EffectState } from './transitions.ts';

/** What a person may say has become of an effect. */
export const FATES_BY_HAND = ['succeeded', 'failed', 'returned'] as const;
export type FateByHand = (typeof FATES_BY_HAND)[number];

/**
 * The state from which a relay goes on when a person asks for another try of the same number; null where there is nothing
 * to try. What is dead was never acted on and may be sent; anything else is looked up before it is sent again.
 */
export function afterRetry(state: EffectState): 'pending' | 'unknown' | 'pending_external' | null {
  switch (state) {
    case 'pending':
    case 'dead':
      return 'pending';
    case 'unknown':
    case 'needs_attention':
      return 'unknown';
    case 'pending_external':
      return 'pending_external';
    case 'sending':
    case 'succeeded':
    case 'failed':
    case 'returned':
      return null;
  }
}

/**
 * Whether a person may say so. A fate that is recorded is never rewritten, but money that was paid can come back; what no
 * send has acted on can't have been paid; and while a relay sends, nobody knows.
 */
export function mayResolve(state: EffectState, fate: FateByHand): boolean {
  switch (state) {
    case 'unknown':
    case 'pending_external':
    case 'needs_attention':
      return true;
    case 'dead':
      return fate === 'failed';
    case 'succeeded':
      return fate === 'returned';
    case 'pending':
    case 'sending':
    case 'failed':
    case 'returned':
      return false;
  }
}
