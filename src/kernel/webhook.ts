import type { Verdict } from './delivery.ts';
import { differenceOf, type FoundTransfer, type Transfer } from './transfer.ts';
import type { EffectState } from './transitions.ts';

/** An effect as a webhook finds it. */
export interface EffectToldOf {
  readonly state: EffectState;
  readonly code: string | null;
  readonly counterpartyId: string | null;
}

/**
 * What a webhook means for its effect: a new state; `stale` where it says what is known already or was true earlier;
 * `attention` where it contradicts what is recorded, which stays as it is until a person has looked. `detail` says in words
 * what differs, null where nothing does.
 */
export type Told =
  | { readonly kind: 'becomes'; readonly verdict: Verdict; readonly detail: string | null }
  | { readonly kind: 'stale' }
  | { readonly kind: 'attention'; readonly code: string; readonly detail: string | null };

/** Where a person compares two transfers, a third voice must not decide. */
const NOT_BY_WEBHOOK: ReadonlySet<string> = new Set(['found_twice', 'found_different', 'returned_in_part']);

/**
 * What a webhook of `type` (`transfer.<status>`) about `transfer` means. Whatever its status, it counts only for the money,
 * the place and the transfer that the effect is about. Webhooks come twice, late and out of order, so the answer depends on
 * the recorded state alone and never on what came before: `returned` before `succeeded` is returned. An effect that the
 * ledger believes unsent becomes `unknown`, so that it is looked up instead of sent. `expected` is what its frozen body states.
 */
export function afterWebhook(
  effect: EffectToldOf,
  expected: Transfer | null,
  type: string,
  transfer: FoundTransfer,
): Told {
  const status = type.slice(type.indexOf('.') + 1);
  const difference = differenceOf(expected, transfer, status);
  if (effect.state === 'pending') return becomes('unknown', 'told_by_webhook', null, difference?.words ?? null);
  if (difference !== null) return wonder(effect, difference.code, transfer.id, difference.words);
  if (effect.counterpartyId !== null && effect.counterpartyId !== transfer.id) {
    return wonder(effect, 'found_twice', transfer.id, `transfer ${transfer.id} beside ${effect.counterpartyId}`);
  }
  switch (effect.state) {
    case 'succeeded':
      return afterSuccess(status, transfer);
    case 'returned':
      return ['pending', 'succeeded', 'returned'].includes(status) ? STALE : attention('contradicts_returned');
    case 'failed':
      return ['pending', 'failed'].includes(status) ? STALE : attention('contradicts_failed');
    case 'dead':
      return attention('contradicts_dead');
    case 'needs_attention':
      if (status === 'pending') return STALE;
      if (NOT_BY_WEBHOOK.has(effect.code ?? '')) return attention('waits_for_a_person');
      break;
    case 'sending':
    case 'unknown':
    case 'pending_external':
      break;
  }
  return afterNews(effect, status, transfer);
}

/** The effect is unfinished, or put before a person for want of proof. */
function afterNews(effect: EffectToldOf, status: string, transfer: FoundTransfer): Told {
  switch (status) {
    case 'succeeded':
    case 'returned':
      return becomes(status, null, transfer.id);
    case 'failed':
      return becomes('failed', 'failed_at_counterparty', transfer.id);
    case 'pending':
      // Of one in `sending` the relay's own answer is on its way, and raising the fence would throw it away.
      return effect.state === 'unknown' ? becomes('pending_external', null, transfer.id) : STALE;
    default:
      return wonder(effect, 'unknown_status', transfer.id);
  }
}

function afterSuccess(status: string, transfer: FoundTransfer): Told {
  if (status === 'returned') return becomes('returned', null, transfer.id);
  return status === 'succeeded' || status === 'pending' ? STALE : attention('contradicts_succeeded');
}

/** States from which a webhook may put the effect itself before a person; in every other one, the webhook alone. */
const IN_DOUBT: ReadonlySet<EffectState> = new Set(['sending', 'unknown', 'pending_external']);

/** A person looks. An id that is recorded stays: what wonders us is not what we go by. */
function wonder(effect: EffectToldOf, code: string, id: string, detail: string | null = null): Told {
  if (!IN_DOUBT.has(effect.state)) return attention(code, detail);
  return becomes('needs_attention', code, effect.counterpartyId ?? id, detail);
}

const STALE: Told = { kind: 'stale' };

function attention(code: string, detail: string | null = null): Told {
  return { kind: 'attention', code, detail };
}

function becomes(
  state: Verdict['state'],
  code: string | null,
  counterpartyId: string | null,
  detail: string | null = null,
): Told {
  const delayMs = state === 'pending_external' ? EXTERNAL_LOOK_UP_MS : 0;
  return { kind: 'becomes', verdict: { kind: 'becomes', state, delayMs, code, counterpartyId }, detail };
}

/** Further webhooks are expected, and may be lost: until then a look-up asks once in a while. */
const EXTERNAL_LOOK_UP_MS = 60_000;
