import type { Registry } from '../jobs/registry.ts';
import { afterRetry, type FateByHand, mayResolve } from '../kernel/by-hand.ts';
import { movesMoney, parseEffectNumber } from '../kernel/effect-number.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Tx } from '../kernel/sql.ts';
import type { EffectState } from '../kernel/transitions.ts';
import { appendAct } from '../store/audit-ledger.ts';
import { type Database, transaction } from '../store/database.ts';
import {
  actsOn,
  deliveriesOf,
  type EffectAct,
  type EffectRecord,
  effectRecord,
  effectsInStates,
  type ListedEffect,
  makeDue,
  markDelivering,
  recordAct,
  type ShownDelivery,
} from '../store/outbox-people.ts';
import { notifyDelivering } from '../store/wake.ts';
import {
  lockToldEffect,
  moveToldEffect,
  type ShownWebhook,
  type ToldEffect,
  webhooksForAPerson,
  webhooksOf,
} from '../store/webhooks.ts';
import { knownKey } from './known-key.ts';

/** Effects that wait for a person, or are in the states asked for, and the webhooks that nobody could apply. */
export interface OutboxList {
  readonly effects: readonly ListedEffect[];
  readonly next: string | null;
  readonly webhooks: readonly ShownWebhook[];
}

/** One effect and all that happened to it. */
export interface OutboxEntry {
  readonly effect: EffectRecord;
  readonly deliveries: readonly ShownDelivery[];
  readonly webhooks: readonly ShownWebhook[];
  readonly acts: readonly EffectAct[];
}

/** An act of a person on an effect, as it was carried out. `delivering` is false where the key is not done yet. */
export interface Acted {
  readonly number: string;
  readonly from: EffectState;
  readonly to: EffectState;
  readonly fence: bigint;
  readonly actor: string;
  readonly delivering: boolean;
}

/** Who acts on which effect, and why. */
interface Ask {
  readonly number: string;
  readonly actor: string;
  readonly reason: string;
}

/** How long an act waits for a relay's or a webhook's transaction. */
const ACT = { label: 'outbox', lockTimeout: 5_000, statementTimeout: 10_000 };
const MAX_WEBHOOKS = 100;

/** Lists effects by number, a page at a time. Throws OnceperError `malformed_key`, `unknown_key`. */
export async function listOutbox(
  tx: Tx,
  ask: {
    readonly states: readonly EffectState[];
    readonly key: string | null;
    readonly after: string | null;
    readonly limit: number;
  },
): Promise<OutboxList> {
  if (ask.key !== null) await knownKey(tx, ask.key);
  return { ...(await effectsInStates(tx, ask)), webhooks: await webhooksForAPerson(tx, MAX_WEBHOOKS) };
}

/** Shows one effect. Throws OnceperError `malformed_effect_number`, `unknown_effect`. */
export async function showEffect(tx: Tx, number: string): Promise<OutboxEntry> {
  parseEffectNumber(number);
  const effect = await effectRecord(tx, number);
  if (effect === null) throw unknownEffect(number);
  return {
    effect,
    deliveries: await deliveriesOf(tx, number),
    webhooks: await webhooksOf(tx, number),
    acts: await actsOn(tx, number),
  };
}

/**
 * Gives an effect back to the relay under its own number, which looks it up before it is sent again. Raises the fence and marks
 * the key as delivering. Throws OnceperError `nothing_to_retry` where its fate is known or a relay has it in hand,
 * `needs_approval` where it is dead, moves money and would be sent at once, `unknown_effect`.
 */
export async function retryEffect(db: Database, ask: Ask): Promise<Acted> {
  return transaction(db, ACT, (tx) =>
    act(tx, ask, 'retry', async (inner, effect) => {
      if (effect.state === 'dead' && movesMoney(effect.number)) throw needsApproval(effect);
      return retry(inner, effect);
    }),
  );
}

/** Gives an effect back as retryEffect does, a dead one too, in the transaction of the approval that allows it. */
export async function retryApproved(tx: Tx, ask: Ask): Promise<Acted> {
  return act(tx, ask, 'retry', retry);
}

async function retry(tx: Tx, effect: ToldEffect): Promise<{ readonly to: EffectState; readonly fence: bigint } | null> {
  const state = afterRetry(effect.state);
  if (state === null) throw nothingTo('retry', effect);
  const fence = await makeDue(tx, effect, state);
  return fence === null ? null : { to: state, fence };
}

/** What a person says has become of an effect. */
export interface Told extends Ask {
  readonly fate: FateByHand;
  readonly counterpartyId: string | null;
}

/**
 * Records what a person knows became of an effect, and posts it as if the counterparty had said so, in the transaction of the
 * approval that allows it. `succeeded` names the counterparty's own id of the transfer, so that it can be found again. Throws
 * OnceperError `nothing_to_resolve`, `counterparty_id_missing`, `unknown_effect`.
 */
export async function resolveEffect(tx: Tx, registry: Registry, told: Told): Promise<Acted> {
  return act(tx, told, 'resolve', async (inner, effect) => {
    refuseToResolve(effect, told);
    const { fate: state, counterpartyId } = told;
    const verdict = { kind: 'becomes', state, delayMs: 0, code: 'resolved_by_hand', counterpartyId } as const;
    const job = registry.get(effect.job);
    const fence = await moveToldEffect(inner, effect, verdict, (same, fates) => job.settleEffects(same, fates));
    return fence === null ? null : { to: state, fence };
  });
}

/** Insists that an effect may be resolved so. Throws OnceperError `nothing_to_resolve`, `counterparty_id_missing`. */
export function refuseToResolve(
  effect: Pick<ToldEffect, 'number' | 'state' | 'counterpartyId'>,
  { fate, counterpartyId }: Pick<Told, 'fate' | 'counterpartyId'>,
): void {
  if (!mayResolve(effect.state, fate)) throw nothingTo('resolve', effect);
  if (fate !== 'failed' && (counterpartyId ?? effect.counterpartyId) === null)
    throw counterpartyIdMissing(effect.number);
}

/** Insists that an effect may be given back. Throws OnceperError `nothing_to_retry`. */
export function refuseToRetry(effect: Pick<ToldEffect, 'number' | 'state'>): void {
  if (afterRetry(effect.state) === null) throw nothingTo('retry', effect);
}

type Change = (tx: Tx, effect: ToldEffect) => Promise<{ readonly to: EffectState; readonly fence: bigint } | null>;

async function act(tx: Tx, ask: Ask, verb: EffectAct['verb'], change: Change): Promise<Acted> {
  const { number, actor, reason } = ask;
  parseEffectNumber(number);
  const effect = await lockToldEffect(tx, number);
  if (effect === null) throw unknownEffect(number);
  const changed = await change(tx, effect);
  if (changed === null) throw nothingTo(verb, effect);
  const { to, fence } = changed;
  await recordAct(tx, number, { fence, verb, from: effect.state, to, actor, reason });
  // After the effect, like everybody who locks both.
  const delivering = verb === 'retry' && (await markDelivering(tx, effect.key));
  if (delivering) await notifyDelivering(tx, effect.key);
  const detail = { from: effect.state, to, fence: fence.toString() };
  await appendAct(tx, ask, { verb, job: effect.job, key: effect.key, subject: number, detail });
  return { number, from: effect.state, to, fence, actor, delivering };
}

function needsApproval({ number }: ToldEffect): OnceperError {
  return new OnceperError({
    code: 'needs_approval',
    message: 'the effect is dead and would be sent at once, which another person must approve',
    remedy: `npx onceper outbox retry ${number} --reason "..." asks for it`,
    at: number,
  });
}

export function unknownEffect(number: string): OnceperError {
  return new OnceperError({
    code: 'unknown_effect',
    message: 'the outbox has no effect of this number',
    remedy: `npx onceper effects ${parseEffectNumber(number).key} lists the effects of its key`,
    at: number,
  });
}

function nothingTo(verb: EffectAct['verb'], { number, state }: Pick<ToldEffect, 'number' | 'state'>): OnceperError {
  const why = state === 'sending' ? 'a relay has it in hand' : 'its fate does not allow it';
  return new OnceperError({
    code: verb === 'retry' ? 'nothing_to_retry' : 'nothing_to_resolve',
    message: `the effect is ${state.replaceAll('_', ' ')}: ${why}`,
    remedy: `npx onceper outbox show ${number}`,
    at: number,
  });
}

function counterpartyIdMissing(number: string): OnceperError {
  return new OnceperError({
    code: 'counterparty_id_missing',
    message: 'a transfer that was made has an id at the counterparty, and none is known here',
    remedy: 'give it with --counterparty-id, from the counterparty’s statement',
    at: number,
  });
}
