import type { Route } from '../gateway/routes.ts';
import type { Verdict } from '../kernel/delivery.ts';
import { afterNotice, firstNoticeStep, type NoticeAnswer } from '../kernel/notice.ts';
import { beginRepeat } from '../store/outbox-repeat.ts';
import type { TakenEffect } from '../store/outbox-take.ts';
import { faultEvent } from './events.ts';
import { askAdapter, heldState, outcomeOf, type Performed, reportCall, tryOf } from './performed.ts';
import type { RelayPlan, RelayServices } from './plan.ts';

/** A notice in hand, and the receiver that its destination names. */
interface Telling {
  readonly services: RelayServices;
  readonly plan: RelayPlan;
  readonly effect: TakenEffect;
  readonly route: Extract<Route, { kind: 'webhook' }>;
  readonly signal: AbortSignal;
}

/**
 * Tells one receiver, outside any transaction. What may have been heard is told again under the same number with the same
 * bytes, without a look-up, once the ledger has counted the try. `until` is the lease's end on the process's steady clock.
 */
export async function tell(telling: Telling, until: number): Promise<Performed> {
  const { plan, effect, route, signal } = telling;
  const step = firstNoticeStep(effect, plan.notices);
  if (step.kind === 'becomes') return outcomeOf(effect, effect.fence, heldState(effect), step, []);
  if (!hasTime(plan, until) || signal.aborted) return { kind: 'not_begun' };
  if (!(await plan.noticePace(route.receiver).turn(until - plan.noticeMs, signal))) return { kind: 'not_begun' };
  return step.kind === 'send' ? send(telling, effect.fence, effect.attempts) : repeat(telling);
}

function hasTime(plan: RelayPlan, until: number): boolean {
  return performance.now() + plan.noticeMs <= until;
}

/** The ledger counts the new try, under a new fence and lease, before its first byte; without that nothing is sent. */
async function repeat(telling: Telling): Promise<Performed> {
  const { services, plan, effect, signal } = telling;
  const until = performance.now() + plan.leaseMs;
  try {
    const begun = await beginRepeat(services.db, effect, plan.leaseMs);
    if (begun === null) return { kind: 'lost' };
    if (!hasTime(plan, until) || signal.aborted) return { kind: 'left' };
    return await send(telling, begun.fence, begun.attempts);
  } catch (error) {
    plan.emit(faultEvent('resend', error));
    return { kind: 'left' };
  }
}

async function send({ plan, effect, route, signal }: Telling, fence: bigint, attempts: number): Promise<Performed> {
  const began = performance.now();
  const { receiver, receivers } = route;
  const answer = await askAdapter<NoticeAnswer>(
    () => receivers.send(receiver, effect.number, effect.body, signal),
    (code) => ({ kind: 'unknown', code, status: null, retryAfterMs: 0 }),
  );
  reportCall({ plan, effect }, 'sent', fence, attempts, answer, began);
  const verdict: Verdict = afterNotice({ ...effect, attempts }, answer, plan.notices, plan.random());
  return outcomeOf(effect, fence, 'sending', verdict, [tryOf(effect, fence, 'send', answer, verdict, null)]);
}
