import { type BackOff, backOffMs, type DeliveryBudget, type EffectInHand, type Verdict } from './delivery.ts';

/**
 * What one send of a notice told us. Any 2xx is `acknowledged`, whatever the answer says; 410 is `gone`: the receiver wants no
 * more; `busy` refused it for now; `unsent` means that not one byte left. `unknown` is everything else: no answer, one that was
 * cut, and every other status, since a receiver that is being mended answers anything.
 */
export type NoticeAnswer =
  | { readonly kind: 'acknowledged'; readonly status: number }
  | { readonly kind: 'gone'; readonly status: number }
  | { readonly kind: 'busy'; readonly retryAfterMs: number; readonly status: number }
  | { readonly kind: 'unsent'; readonly code: string }
  | { readonly kind: 'unknown'; readonly code: string; readonly status: number | null; readonly retryAfterMs: number };

/** How long the relay goes on by itself with a notice. Milliseconds. */
export interface NoticeTerms {
  /** Both must be spent before a notice is dead; a try that died with its process counts at once, whatever the time. */
  readonly budget: Pick<DeliveryBudget, 'tries' | 'timeMs'>;
  readonly backOff: BackOff;
}

/** Three days of tries, every quarter of an hour in the end: a receiver that is down over a weekend still learns of it. */
export const NOTICE_DEFAULTS = {
  budget: { tries: 12, timeMs: 72 * 3_600_000 },
  backOff: { baseMs: 1_000, capMs: 15 * 60_000 },
} as const satisfies NoticeTerms;

/** `repeat` sends the same number and the same bytes again, after the ledger has counted the try, and without a look-up. */
export type NoticeStep = { readonly kind: 'send' } | { readonly kind: 'repeat' } | Verdict;

/**
 * What a relay does first with a notice that it took. There is nothing to look up and no need to: the receiver recognises
 * the number for good. Money never comes here; its rule, unknown is looked up first, stands in delivery.ts.
 */
export function firstNoticeStep(effect: EffectInHand, terms: NoticeTerms): NoticeStep {
  switch (effect.before) {
    case 'pending':
      return { kind: 'send' };
    case 'sending':
      // Its relay died with it. Counted before, so that one that kills every relay ends.
      return effect.attempts >= terms.budget.tries ? becomes('dead', 'exhausted') : { kind: 'repeat' };
    case 'unknown':
      return { kind: 'repeat' };
    case 'pending_external':
      return becomes('needs_attention', 'no_transfer');
  }
}

/** What a send's answer means. The receiver knows the message by its number, which is therefore its id there. */
export function afterNotice(
  effect: EffectInHand & { readonly number: string },
  answer: NoticeAnswer,
  terms: NoticeTerms,
  jitter: number,
): Verdict {
  const later = backOffMs(effect.attempts, terms.backOff, jitter);
  switch (answer.kind) {
    case 'acknowledged':
      return { ...becomes('succeeded', null), counterpartyId: effect.number };
    case 'gone':
      return becomes('failed', 'gone');
    case 'busy':
      return again(effect, undone(effect), 'busy', Math.max(later, answer.retryAfterMs), terms);
    case 'unsent':
      return again(effect, undone(effect), answer.code, later, terms);
    case 'unknown':
      return again(effect, 'unknown', answer.code, Math.max(later, answer.retryAfterMs), terms);
  }
}

/** This send did nothing; whether an earlier one did is as unknown as before. */
function undone(effect: EffectInHand): 'pending' | 'unknown' {
  return effect.before === 'pending' ? 'pending' : 'unknown';
}

function again(
  { attempts, firstSentAgeMs }: EffectInHand,
  state: 'pending' | 'unknown',
  code: string,
  delayMs: number,
  { budget }: NoticeTerms,
): Verdict {
  const isExhausted = attempts >= budget.tries && (firstSentAgeMs ?? 0) >= budget.timeMs;
  return isExhausted ? becomes('dead', code) : { kind: 'becomes', state, delayMs, code, counterpartyId: null };
}

function becomes(state: Verdict['state'], code: string | null): Verdict {
  return { kind: 'becomes', state, delayMs: 0, code, counterpartyId: null };
}
