import type { DeliveryTerms, EffectInHand } from '../../src/kernel/delivery.ts';
import type { FoundTransfer, LookUpAnswer, SendAnswer, Transfer } from '../../src/kernel/transfer.ts';

/** Effects as a relay has them in hand, and what a counterparty answers about them. */
const HOUR = 3_600_000;
export const terms: DeliveryTerms = {
  keyWindowMs: 24 * HOUR,
  visibilityDelayMs: 30_000,
  timeoutMs: 10_000,
  maxNumberLength: 64,
  budget: { tries: 3, timeMs: HOUR, lookUps: 5 },
  backOff: { baseMs: 1_000, capMs: 60_000 },
};
const number = 'settlement:2026-09:m-1:GBP:payout';
export const expected: Transfer = { amount: '1250', currency: 'GBP', destination: 'm-1', reference: number };
const found: FoundTransfer = { ...expected, id: 'tr_1', status: 'succeeded' };

export const fresh: EffectInHand = {
  before: 'pending',
  attempts: 1,
  lookUps: 0,
  periodEndedAgeMs: HOUR,
  firstSentAgeMs: null,
  lastSentAgeMs: null,
};
export const unknown: EffectInHand = {
  before: 'unknown',
  attempts: 1,
  lookUps: 1,
  periodEndedAgeMs: HOUR,
  firstSentAgeMs: 60_000,
  lastSentAgeMs: 60_000,
};
export const orphan: EffectInHand = { ...unknown, before: 'sending' };
export const external: EffectInHand = { ...unknown, before: 'pending_external' };
export const young = { firstSentAgeMs: 5_000, lastSentAgeMs: 5_000 };
export const old = { firstSentAgeMs: 24 * HOUR - 10_000, lastSentAgeMs: 60_000 };
export const spent = { attempts: 3, firstSentAgeMs: 2 * HOUR };

export const accepted = (transfer: Partial<FoundTransfer> = {}): SendAnswer => ({
  kind: 'accepted',
  transfer: { ...found, ...transfer },
  status: 201,
});
export const shown = (...transfers: Partial<FoundTransfer>[]): LookUpAnswer => ({
  kind: 'found',
  transfers: transfers.map((transfer) => ({ ...found, ...transfer })),
  status: 200,
});
export const refused = (status: number, code: string): SendAnswer => ({ kind: 'refused', status, code });
export const short: SendAnswer & LookUpAnswer = { kind: 'barred', status: 402, code: 'no_balance' };
export const stale: SendAnswer = { kind: 'repeated', status: 400, code: 'no_balance' };
export const busy: SendAnswer = { kind: 'busy', retryAfterMs: 7_000, status: 429 };
export const lost: SendAnswer = { kind: 'unknown', code: 'timeout', status: null };
export const down: SendAnswer = { kind: 'unsent', code: 'econnrefused' };
export const notFound: LookUpAnswer = { kind: 'not_found', status: 200 };
export const noLookUp: LookUpAnswer = { kind: 'unknown', code: 'http_500', status: 500 };
