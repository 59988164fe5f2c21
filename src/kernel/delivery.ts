import { OnceperError } from './error.ts';
import { differenceOf, type FoundTransfer, type LookUpAnswer, type SendAnswer, type Transfer } from './transfer.ts';
import type { EffectState } from './transitions.ts';

/**
 * How long the relay goes on by itself. Too small, and an outage of the counterparty puts healthy payouts before a person;
 * too large, and a poison row is tried for days. A try that died with its process counts at once, whatever the time.
 */
export interface DeliveryBudget {
  /** Sends of one number. They are spent only when `timeMs` since the first send has passed too. */
  readonly tries: number;
  readonly timeMs: number;
  /** Look-ups of one number while its fate is unknown. */
  readonly lookUps: number;
}

export interface BackOff {
  readonly baseMs: number;
  readonly capMs: number;
}

/** What a counterparty promises (GatewayProperties) beside what we allow ourselves. Milliseconds. */
export interface DeliveryTerms {
  readonly keyWindowMs: number;
  readonly visibilityDelayMs: number;
  readonly timeoutMs: number;
  readonly maxNumberLength: number;
  readonly budget: DeliveryBudget;
  readonly backOff: BackOff;
}

/** 12 tries over 6 hours outlast a bank's evening; 120 look-ups at the back-off's cap outlast a key window of a day. */
export const DELIVERY_DEFAULTS = {
  budget: { tries: 12, timeMs: 6 * 3_600_000, lookUps: 120 },
  backOff: { baseMs: 1_000, capMs: 15 * 60_000 },
} as const satisfies Pick<DeliveryTerms, 'budget' | 'backOff'>;

/**
 * An effect as a relay holds it. `before` is its state when it was taken: `pending` says that no send so far can have acted;
 * `sending` that a relay died between its take and its record. Ages are by the database's clock, null where never sent.
 */
export interface EffectInHand {
  readonly before: Extract<EffectState, 'pending' | 'sending' | 'unknown' | 'pending_external'>;
  readonly attempts: number;
  readonly lookUps: number;
  /** Since the period of its key ended; null where the ledger does not know when that was. */
  readonly periodEndedAgeMs: number | null;
  readonly firstSentAgeMs: number | null;
  readonly lastSentAgeMs: number | null;
  /** The counterparty's id of the transfer, where one has been stated. */
  readonly counterpartyId?: string | null;
  /** True of the one effect that tries a paused destination: what is barred then counts toward no budget. */
  readonly isProbe?: boolean;
}

/** What becomes of the effect; `delayMs` is when it is due again, 0 where it needs the relay no more. */
export interface Verdict {
  readonly kind: 'becomes';
  readonly state: Exclude<EffectState, 'sending'>;
  readonly delayMs: number;
  readonly code: string | null;
  readonly counterpartyId: string | null;
  /** True where the try is taken back from the counts: it did nothing, and not for the effect's own sake. */
  readonly isUncounted?: boolean;
}

/** Permission to send the number and its bytes, for the first time or again, after a look-up. `expected` is what they state. */
export interface Resend {
  readonly kind: 'resend';
  readonly expected: Transfer;
}

export type FirstStep = { readonly kind: 'send'; readonly expected: Transfer } | { readonly kind: 'look_up' } | Verdict;

/** Doubles from `baseMs` to `capMs` with the number of steps so far; `jitter` in [0, 1) takes away up to a half. */
export function backOffMs(steps: number, backOff: BackOff, jitter: number): number {
  const full = Math.min(backOff.capMs, backOff.baseMs * 2 ** Math.min(40, Math.max(0, steps - 1)));
  return Math.round(full * (1 - jitter / 2));
}

/** How old a number's first use may be for a send to begin: its last byte must leave while the counterparty still remembers. */
export function resendWindowMs(terms: Pick<DeliveryTerms, 'keyWindowMs' | 'timeoutMs'>): number {
  return terms.keyWindowMs - terms.timeoutMs;
}

/**
 * Refuses a counterparty whose promises leave no moment for a safe re-send.
 * @throws OnceperError `gateway_terms` unless visibility delay < key window − time-out, all positive.
 */
export function checkTerms(terms: DeliveryTerms): void {
  if (terms.timeoutMs > 0 && terms.visibilityDelayMs >= 0 && terms.visibilityDelayMs < resendWindowMs(terms)) return;
  throw new OnceperError({
    code: 'gateway_terms',
    message: `a look-up proves nothing for ${terms.visibilityDelayMs} ms, but after ${resendWindowMs(terms)} ms nothing may be sent again`,
    remedy:
      'the key window must exceed the visibility delay and the time-out together: compare the counterparty’s documents',
  });
}

/**
 * Whether a pending effect may be sent without a look-up, `inHandMs` after it was taken. Its number may have been used at any
 * time since its period ended, by a ledger that a restore has replaced; the counterparty recognises it inside the key window
 * only. An end that is not known, or still to come by the database's clock, proves nothing.
 */
export function maySendBlind(
  { periodEndedAgeMs }: Pick<EffectInHand, 'periodEndedAgeMs'>,
  inHandMs: number,
  terms: Pick<DeliveryTerms, 'keyWindowMs' | 'timeoutMs'>,
): boolean {
  return periodEndedAgeMs !== null && periodEndedAgeMs >= 0 && periodEndedAgeMs + inHandMs < resendWindowMs(terms);
}

/**
 * Whether a pending effect that the counterparty did not know `agoMs` ago may be sent. A transfer that was too young to be seen
 * then must be young enough for its number to be recognised now.
 */
export function isAbsenceFresh(
  agoMs: number,
  terms: Pick<DeliveryTerms, 'keyWindowMs' | 'timeoutMs' | 'visibilityDelayMs'>,
): boolean {
  return terms.visibilityDelayMs + agoMs < resendWindowMs(terms);
}

/**
 * What a relay does first with an effect that it took; what is to be sent is looked up before, unless maySendBlind. `expected`
 * is null where the frozen body is no transfer.
 */
export function firstStep(
  effect: EffectInHand,
  number: string,
  expected: Transfer | null,
  terms: DeliveryTerms,
): FirstStep {
  if (effect.before === 'pending') {
    if (expected === null) return becomes('dead', 'malformed_body');
    if (number.length > terms.maxNumberLength) return becomes('dead', 'number_too_long');
    return { kind: 'send', expected };
  }
  if (effect.before !== 'pending_external' && effect.lookUps > terms.budget.lookUps) {
    return becomes('needs_attention', 'exhausted');
  }
  return { kind: 'look_up' };
}

/**
 * What a send's answer means. On a fresh effect (taken as `pending`) a refusal is a fact; after an unknown it proves nothing,
 * for the earlier send may have acted. An answer about us ends nothing: the effect waits as it was, under its number and for as
 * long as its destination is paused. What is barred again and again while the destination is open is put before a person.
 */
export function afterSend(
  effect: EffectInHand,
  expected: Transfer,
  answer: SendAnswer,
  terms: DeliveryTerms,
  jitter: number,
): Verdict {
  const isFresh = effect.before === 'pending';
  const later = backOffMs(effect.attempts + effect.lookUps, terms.backOff, jitter);
  switch (answer.kind) {
    case 'accepted':
      return known(effect, expected, [answer.transfer], later);
    case 'key_reused':
      return becomes('needs_attention', 'key_reused');
    case 'in_flight':
      return waits('unknown', later, 'in_flight');
    case 'unknown':
      return waits('unknown', later, answer.code);
    case 'refused':
      return isFresh ? becomes('failed', answer.code) : waits('unknown', later, answer.code);
    case 'barred':
    case 'repeated':
      return barred(effect, answer.code, later, terms);
    case 'busy':
      return undone(effect, 'busy', Math.max(later, answer.retryAfterMs), terms);
    case 'unsent':
      return undone(effect, answer.code, later, terms);
  }
}

/**
 * What a look-up's answer means: proof, patience, or a re-send. "Not found" allows a re-send only when the visibility delay
 * has passed since the last send and the key window since the first has not; after that it takes proof or a person. Of a
 * pending effect, which no send of this ledger can have acted for, it allows the first one while isAbsenceFresh.
 */
export function afterLookUp(
  effect: EffectInHand,
  expected: Transfer | null,
  answer: LookUpAnswer,
  terms: DeliveryTerms,
  jitter: number,
): Verdict | Resend {
  const later = backOffMs(effect.attempts + effect.lookUps, terms.backOff, jitter);
  switch (answer.kind) {
    case 'found':
      return expected === null
        ? becomes('needs_attention', 'malformed_body')
        : known(effect, expected, answer.transfers, later);
    case 'barred':
      return barred(effect, answer.code, later, terms);
    case 'unknown':
      if (effect.before === 'pending') return undone(effect, answer.code, later, terms);
      if (effect.before === 'pending_external') return waits('pending_external', later, answer.code);
      if (effect.lookUps >= terms.budget.lookUps) return becomes('needs_attention', 'exhausted');
      return waits('unknown', later, answer.code);
    case 'not_found':
      return afterNotFound(effect, expected, terms, later);
  }
}

function afterNotFound(
  effect: EffectInHand,
  expected: Transfer | null,
  terms: DeliveryTerms,
  later: number,
): Verdict | Resend {
  if (effect.before === 'pending' && expected !== null) return { kind: 'resend', expected };
  const blindMs = terms.visibilityDelayMs - (effect.lastSentAgeMs ?? 0);
  if (effect.before === 'pending_external') {
    return blindMs > 0
      ? waits('pending_external', Math.max(later, blindMs), 'not_visible_yet')
      : becomes('needs_attention', 'vanished');
  }
  if (blindMs > 0) return waits('unknown', Math.max(later, blindMs), 'not_visible_yet');
  if (expected === null) return becomes('needs_attention', 'malformed_body');
  if ((effect.firstSentAgeMs ?? 0) >= resendWindowMs(terms)) return becomes('needs_attention', 'key_window_passed');
  if (isExhausted(effect, terms.budget)) return becomes('needs_attention', 'exhausted');
  return { kind: 'resend', expected };
}

/** The verdict on a transfer that the counterparty shows: one, for the same money to the same place, or a person looks. */
function known(effect: EffectInHand, expected: Transfer, transfers: readonly FoundTransfer[], later: number): Verdict {
  const [transfer, second] = transfers;
  if (transfer === undefined || second !== undefined) return becomes('needs_attention', 'found_twice');
  const { id } = transfer;
  const recorded = effect.counterpartyId ?? id;
  const difference = differenceOf(expected, transfer, transfer.status);
  if (difference !== null) return becomes('needs_attention', difference.code, recorded);
  if (recorded !== id) return becomes('needs_attention', 'found_twice', recorded);
  switch (transfer.status) {
    case 'succeeded':
      return becomes('succeeded', null, id);
    case 'returned':
      return becomes('returned', null, id);
    case 'failed':
      return becomes('failed', 'failed_at_counterparty', id);
    case 'pending':
      return { kind: 'becomes', state: 'pending_external', delayMs: later, code: null, counterpartyId: id };
    default:
      return becomes('needs_attention', 'unknown_status', id);
  }
}

/** This send did nothing. Only where no earlier one can have acted either may the effect wait as pending, or end as dead. */
function undone(effect: EffectInHand, code: string, delayMs: number, terms: DeliveryTerms): Verdict {
  if (effect.before !== 'pending') return waits('unknown', delayMs, code);
  return isExhausted(effect, terms.budget) ? becomes('dead', code) : waits('pending', delayMs, code);
}

/** This exchange did nothing, and says nothing of the payout. */
function barred(effect: EffectInHand, code: string, delayMs: number, terms: DeliveryTerms): Verdict {
  const state = effect.before === 'sending' ? 'unknown' : effect.before;
  if (effect.isProbe === true) return { ...waits(state, delayMs, code), isUncounted: true };
  const isSpent =
    state === 'pending'
      ? isExhausted(effect, terms.budget)
      : state === 'unknown' && effect.lookUps >= terms.budget.lookUps;
  return isSpent ? becomes('needs_attention', code) : waits(state, delayMs, code);
}

function isExhausted(effect: EffectInHand, budget: DeliveryBudget): boolean {
  if (effect.attempts < budget.tries) return false;
  return effect.before === 'sending' || (effect.firstSentAgeMs ?? 0) >= budget.timeMs;
}

function becomes(state: Verdict['state'], code: string | null, counterpartyId: string | null = null): Verdict {
  return { kind: 'becomes', state, delayMs: 0, code, counterpartyId };
}

function waits(state: 'pending' | 'unknown' | 'pending_external', delayMs: number, code: string): Verdict {
  return { kind: 'becomes', state, delayMs, code, counterpartyId: null };
}
