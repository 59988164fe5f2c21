import { hash } from 'node:crypto';
import type { Verdict } from '../kernel/delivery.ts';
import { type Said, saidOfDestination } from '../kernel/destination.ts';
import { codeOf } from '../kernel/error.ts';
import type { LookUpAnswer, SendAnswer } from '../kernel/transfer.ts';
import type { DeliveryTry, EffectOutcome } from '../store/outbox-record.ts';
import type { TakenEffect } from '../store/outbox-take.ts';
import type { RelayPlan } from './plan.ts';

/**
 * What came of one taken effect: an outcome to record; nothing begun, so it can be given back; taken over by another relay;
 * or left as it is in the ledger, where the end of its lease makes it due again.
 */
export type Performed =
  | { readonly kind: 'outcome'; readonly outcome: EffectOutcome }
  | { readonly kind: 'not_begun' | 'lost' | 'left' };

/** Whatever an adapter answers, of which the kind, and where there are any the code and the status, are kept. */
interface Answer {
  readonly kind: string;
}

/** An adapter that throws has told us nothing: after a send the effect's fate is unknown, whatever the exception says. */
export async function askAdapter<Given>(ask: () => Promise<Given>, unknown: (code: string) => Given): Promise<Given> {
  try {
    return await ask();
  } catch (error) {
    return unknown(`adapter_threw_${codeOf(error) ?? 'error'}`);
  }
}

/** Says that a call has ended, and how. */
export function reportCall(
  { plan, effect }: { readonly plan: RelayPlan; readonly effect: TakenEffect },
  kind: 'sent' | 'looked_up',
  fence: bigint,
  attempt: number,
  answer: Answer,
  began: number,
): void {
  const { number, job, key } = effect;
  const ms = Math.round(performance.now() - began);
  plan.emit({ kind, number, job, key, fence, attempt, answer: answer.kind, ...codeAndStatus(answer), ms });
}

export function outcomeOf(
  effect: TakenEffect,
  fence: bigint,
  held: EffectOutcome['held'],
  verdict: Verdict,
  tries: readonly DeliveryTry[],
  said: Said = null,
): Performed {
  const { number, key, subject } = effect;
  return { kind: 'outcome', outcome: { number, key, subject, fence, held, verdict, tries, said } };
}

/** What one exchange with the counterparty of money says of it as a whole. */
export function saidBy({ isProbe, before }: TakenEffect, answer: SendAnswer | LookUpAnswer): Said {
  return saidOfDestination({ isProbe, wouldSend: before === 'pending' }, answer);
}

/** The state that the take has left the row in. */
export function heldState(effect: TakenEffect): EffectOutcome['held'] {
  if (effect.before === 'pending') return 'sending';
  return effect.before === 'pending_external' ? 'pending_external' : 'unknown';
}

/** One call as evidence; `text` is what is kept of the answer's own words. */
export function tryOf(
  effect: TakenEffect,
  fence: bigint,
  step: DeliveryTry['step'],
  answer: Answer,
  verdict: Pick<Verdict, 'counterpartyId'>,
  text: string | null,
): DeliveryTry {
  return {
    number: effect.number,
    fence,
    step,
    requestHash: sha256(step === 'send' ? effect.body : effect.number),
    outcome: answer.kind,
    ...codeAndStatus(answer),
    counterpartyId: verdict.counterpartyId,
    answer: text,
  };
}

export function codeAndStatus(answer: Answer): { code: string | null; status: number | null } {
  return {
    code: 'code' in answer && typeof answer.code === 'string' ? answer.code : null,
    status: 'status' in answer && typeof answer.status === 'number' ? answer.status : null,
  };
}

export function sha256(text: string): string {
  return hash('sha256', text);
}
