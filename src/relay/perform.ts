import { hash } from 'node:crypto';
import type { LookUpAnswer, SendAnswer, Transfer } from '../gateway/port.ts';
import { parseTransfer } from '../gateway/transfer.ts';
import { afterLookUp, afterSend, firstStep, resendWindowMs, type Verdict } from '../kernel/delivery.ts';
import { codeOf } from '../kernel/error.ts';
import type { DeliveryTry, EffectOutcome } from '../store/outbox-record.ts';
import { beginResend, type TakenEffect } from '../store/outbox-take.ts';
import { faultEvent } from './events.ts';
import type { RelayPlan, RelayServices } from './plan.ts';

/**
 * What came of one taken effect: an outcome to record; nothing begun, so it can be given back; taken over by another relay;
 * or left as it is in the ledger, where the end of its lease makes it due again.
 */
export type Performed =
  | { readonly kind: 'outcome'; readonly outcome: EffectOutcome }
  | { readonly kind: 'not_begun' | 'lost' | 'left' };

interface Performance {
  readonly services: RelayServices;
  readonly plan: RelayPlan;
  readonly effect: TakenEffect;
  readonly expected: Transfer | null;
  readonly signal: AbortSignal;
}

/**
 * Performs one taken effect, outside any transaction: a fresh one is sent; any other is looked up, and sent again only when
 * the look-up allows it and the ledger has counted the try first. `until` is the lease's end on the process's steady clock:
 * a call begins only while enough is left, so a relay that was stopped and woke up hours later sends nothing.
 */
export async function perform(
  services: RelayServices,
  plan: RelayPlan,
  effect: TakenEffect,
  until: number,
  signal: AbortSignal,
): Promise<Performed> {
  const act: Performance = { services, plan, effect, expected: parseTransfer(effect.body), signal };
  const step = firstStep(effect, effect.number, act.expected, plan.terms);
  if (step.kind === 'becomes') return outcomeOf(effect, effect.fence, heldState(effect), step, []);
  if (!hasTime(plan, until) || !(await plan.pace.turn(until - plan.callMs, signal))) return { kind: 'not_begun' };
  return step.kind === 'send' ? send(act, step.expected, effect.fence, effect.attempts) : lookUp(act);
}

function hasTime(plan: RelayPlan, until: number): boolean {
  return performance.now() + plan.callMs <= until;
}

async function lookUp(act: Performance): Promise<Performed> {
  const { services, plan, effect, expected } = act;
  const began = performance.now();
  const answer = await askGateway(
    () => services.gateway.lookUp(effect.number, act.signal),
    (code): LookUpAnswer => ({ kind: 'unknown', code, status: null }),
  );
  report(act, 'looked_up', effect.fence, effect.attempts, answer, began);
  const verdict = afterLookUp(effect, expected, answer, plan.terms, plan.random());
  if (verdict.kind === 'resend') return resend(act, verdict.expected, codeAndStatus(answer).status);
  return outcomeOf(effect, effect.fence, heldState(effect), verdict, [
    tryOf(effect, effect.fence, 'look_up', answer, verdict),
  ]);
}

/** The ledger counts the new try, under a new fence and lease, before its first byte; without that nothing is sent. */
async function resend(act: Performance, expected: Transfer, status: number | null): Promise<Performed> {
  const { services, plan, effect } = act;
  const until = performance.now() + plan.leaseMs;
  try {
    const begun = await beginResend(services.db, effect, {
      windowMs: resendWindowMs(plan.terms),
      leaseMs: plan.leaseMs,
      requestHash: sha256(effect.number),
      status,
    });
    if (begun === null) return { kind: 'lost' };
    if (!hasTime(plan, until) || act.signal.aborted) return { kind: 'left' };
    return await send(act, expected, begun.fence, begun.attempts);
  } catch (error) {
    plan.emit(faultEvent('resend', error));
    return { kind: 'left' };
  }
}

async function send(act: Performance, expected: Transfer, fence: bigint, attempts: number): Promise<Performed> {
  const { services, plan, effect } = act;
  const began = performance.now();
  const answer = await askGateway(
    () => services.gateway.send(effect.number, effect.body, act.signal),
    (code): SendAnswer => ({ kind: 'unknown', code, status: null }),
  );
  report(act, 'sent', fence, attempts, answer, began);
  const verdict = afterSend({ ...effect, attempts }, expected, answer, plan.terms, plan.random());
  return outcomeOf(effect, fence, 'sending', verdict, [tryOf(effect, fence, 'send', answer, verdict)]);
}

/** An adapter that throws has told us nothing: after a send the effect's fate is unknown, whatever the exception says. */
async function askGateway<Answer>(ask: () => Promise<Answer>, unknown: (code: string) => Answer): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    return unknown(`adapter_threw_${codeOf(error) ?? 'error'}`);
  }
}

function report(
  { plan, effect }: Performance,
  kind: 'sent' | 'looked_up',
  fence: bigint,
  attempt: number,
  answer: SendAnswer | LookUpAnswer,
  began: number,
): void {
  const { number, job, key } = effect;
  const ms = Math.round(performance.now() - began);
  plan.emit({ kind, number, job, key, fence, attempt, answer: answer.kind, ...codeAndStatus(answer), ms });
}

function outcomeOf(
  effect: TakenEffect,
  fence: bigint,
  held: EffectOutcome['held'],
  verdict: Verdict,
  tries: readonly DeliveryTry[],
): Performed {
  const { number, key, subject } = effect;
  return { kind: 'outcome', outcome: { number, key, subject, fence, held, verdict, tries } };
}

/** The state that the take has left the row in. */
function heldState(effect: TakenEffect): EffectOutcome['held'] {
  if (effect.before === 'pending') return 'sending';
  return effect.before === 'pending_external' ? 'pending_external' : 'unknown';
}

function tryOf(
  effect: TakenEffect,
  fence: bigint,
  step: DeliveryTry['step'],
  answer: SendAnswer | LookUpAnswer,
  verdict: Verdict,
): DeliveryTry {
  return {
    number: effect.number,
    fence,
    step,
    requestHash: sha256(step === 'send' ? effect.body : effect.number),
    outcome: answer.kind,
    ...codeAndStatus(answer),
    counterpartyId: verdict.counterpartyId,
    answer: answerText(answer, verdict),
  };
}

function codeAndStatus(answer: SendAnswer | LookUpAnswer): { code: string | null; status: number | null } {
  return { code: 'code' in answer ? answer.code : null, status: 'status' in answer ? answer.status : null };
}

/** The transfer's status; all of the answer where a person must compare it with the frozen body. */
function answerText(answer: SendAnswer | LookUpAnswer, verdict: Verdict): string | null {
  const transfers = answer.kind === 'accepted' ? [answer.transfer] : answer.kind === 'found' ? answer.transfers : [];
  if (transfers.length === 0) return null;
  if (verdict.state === 'needs_attention') return JSON.stringify(transfers).slice(0, 2_000);
  return transfers.map((transfer) => transfer.status).join(' ');
}

function sha256(text: string): string {
  return hash('sha256', text);
}
