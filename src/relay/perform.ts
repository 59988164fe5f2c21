import type { Gateway, LookUpAnswer, SendAnswer, Transfer } from '../gateway/port.ts';
import { routeOf } from '../gateway/routes.ts';
import { parseTransfer } from '../gateway/transfer.ts';
import {
  afterLookUp,
  afterSend,
  firstStep,
  isAbsenceFresh,
  maySendBlind,
  resendWindowMs,
  type Verdict,
} from '../kernel/delivery.ts';
import type { DeliveryTry } from '../store/outbox-record.ts';
import { beginResend, type TakenEffect } from '../store/outbox-take.ts';
import { faultEvent } from './events.ts';
import {
  askAdapter,
  codeAndStatus,
  heldState,
  outcomeOf,
  type Performed,
  reportCall,
  saidBy,
  sha256,
  tryOf,
} from './performed.ts';
import type { RelayPlan, RelayServices } from './plan.ts';
import { tell } from './tell.ts';

interface Performance {
  readonly services: RelayServices;
  readonly gateway: Gateway;
  readonly plan: RelayPlan;
  readonly effect: TakenEffect;
  readonly expected: Transfer | null;
  /** The lease's end on the process's steady clock. */
  readonly until: number;
  readonly signal: AbortSignal;
}

/**
 * Performs one taken effect, outside any transaction, by the adapter that its destination's kind asks for. Of those that move
 * money a fresh one is sent, after a look-up where its period ended too long ago; any other is looked up, and sent again only
 * when the look-up allows it and the ledger has counted the try first. `until` is the lease's end on the process's steady clock:
 * a call begins only while enough is left, so a relay that was stopped and woke up hours later sends nothing.
 */
export async function perform(
  services: RelayServices,
  plan: RelayPlan,
  effect: TakenEffect,
  until: number,
  signal: AbortSignal,
): Promise<Performed> {
  const route = routeOf(services, effect.destination);
  if (route.kind === 'webhook') return tell({ services, plan, effect, route, signal }, until);
  const { gateway } = route;
  const act: Performance = { services, gateway, plan, effect, expected: parseTransfer(effect.body), until, signal };
  const step = firstStep(effect, effect.number, act.expected, plan.terms);
  if (step.kind === 'becomes') return outcomeOf(effect, effect.fence, heldState(effect), step, []);
  if (!(await hasTurn(act))) return { kind: 'not_begun' };
  return step.kind === 'send' && maySendBlind(effect, inHandMs(act), plan.terms)
    ? send(act, step.expected, effect.fence, effect.attempts, [])
    : lookUp(act);
}

/** True when a call may begin: enough of the lease is left, and the counterparty takes another one now. */
async function hasTurn({ plan, until, signal }: Performance): Promise<boolean> {
  return hasTime(plan, until) && plan.pace.turn(until - plan.callMs, signal);
}

/** How long ago the effect was taken, at most: the lease began no earlier. */
function inHandMs({ plan, until }: Performance): number {
  return performance.now() - (until - plan.leaseMs);
}

function hasTime(plan: RelayPlan, until: number): boolean {
  return performance.now() + plan.callMs <= until;
}

async function lookUp(act: Performance): Promise<Performed> {
  const { gateway, plan, effect, expected } = act;
  const began = performance.now();
  const answer = await askAdapter(
    () => gateway.lookUp(effect.number, act.signal),
    (code): LookUpAnswer => ({ kind: 'unknown', code, status: null }),
  );
  reportCall(act, 'looked_up', effect.fence, effect.attempts, answer, began);
  const verdict = afterLookUp(effect, expected, answer, plan.terms, plan.random());
  if (verdict.kind === 'resend') return afterAbsence(act, verdict.expected, { answer, began });
  const evidence = tryOf(effect, effect.fence, 'look_up', answer, verdict, answerText(answer, verdict));
  return outcomeOf(effect, effect.fence, heldState(effect), verdict, [evidence], saidBy(effect, answer));
}

/** Sends what the counterparty did not know when it was asked. Of a fresh effect the take has counted the try already. */
async function afterAbsence(
  act: Performance,
  expected: Transfer,
  { answer, began }: { readonly answer: LookUpAnswer; readonly began: number },
): Promise<Performed> {
  const { plan, effect } = act;
  if (!(await hasTurn(act))) return { kind: 'not_begun' };
  if (effect.before !== 'pending') return resend(act, expected, codeAndStatus(answer).status);
  if (!isAbsenceFresh(performance.now() - began, plan.terms)) return { kind: 'not_begun' };
  const evidence = tryOf(effect, effect.fence, 'look_up', answer, { counterpartyId: null }, null);
  return send(act, expected, effect.fence, effect.attempts, [evidence]);
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
    return await send(act, expected, begun.fence, begun.attempts, []);
  } catch (error) {
    plan.emit(faultEvent('resend', error));
    return { kind: 'left' };
  }
}

async function send(
  act: Performance,
  expected: Transfer,
  fence: bigint,
  attempts: number,
  before: readonly DeliveryTry[],
): Promise<Performed> {
  const { gateway, plan, effect } = act;
  const began = performance.now();
  const answer = await askAdapter(
    () => gateway.send(effect.number, effect.body, act.signal, effect.repeats),
    (code): SendAnswer => ({ kind: 'unknown', code, status: null }),
  );
  reportCall(act, 'sent', fence, attempts, answer, began);
  const verdict = afterSend({ ...effect, attempts }, expected, answer, plan.terms, plan.random());
  const evidence = tryOf(effect, fence, 'send', answer, verdict, answerText(answer, verdict));
  return outcomeOf(effect, fence, 'sending', verdict, [...before, evidence], saidBy(effect, answer));
}

/** The transfer's status; all of the answer where a person must compare it with the frozen body. */
function answerText(answer: SendAnswer | LookUpAnswer, verdict: Verdict): string | null {
  const transfers = answer.kind === 'accepted' ? [answer.transfer] : answer.kind === 'found' ? answer.transfers : [];
  if (transfers.length === 0) return null;
  if (verdict.state === 'needs_attention') return JSON.stringify(transfers).slice(0, 2_000);
  return transfers.map((transfer) => transfer.status).join(' ');
}
