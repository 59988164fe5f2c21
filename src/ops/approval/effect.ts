import { FATES_BY_HAND } from '../../kernel/by-hand.ts';
import { parseEffectNumber } from '../../kernel/effect-number.ts';
import { parseKey } from '../../kernel/key.ts';
import type { Tx } from '../../kernel/sql.ts';
import { type EffectRecord, effectRecord } from '../../store/outbox-people.ts';
import { refuseToResolve, refuseToRetry, resolveEffect, retryApproved, type Told, unknownEffect } from '../outbox.ts';
import { type Act, type Ask, textOf } from './act.ts';

/** Records what became of an effect, from proof that the counterparty's interface does not give. */
export const resolve: Act = {
  kinds: ['resolve_effect'],
  async plan(tx, _, ask) {
    const effect = await mustHave(tx, textOf(ask, 'number'));
    const told = toldIn(ask);
    refuseToResolve(effect, told);
    const { fate: as, counterpartyId } = told;
    return planned(effect, { as, counterpartyId });
  },
  async perform(tx, { registry }, { approval, actor }) {
    const { ask, reason, decidedBy } = approval;
    await resolveEffect(tx, registry, {
      ...toldIn(ask),
      number: textOf(ask, 'number'),
      actor: decidedBy ?? actor,
      reason,
    });
    return { kind: 'none' };
  },
};

/** Gives a dead effect back to the relay, which sends it under its own number. */
export const retryDead: Act = {
  kinds: ['retry_effect'],
  async plan(tx, _, ask) {
    const effect = await mustHave(tx, textOf(ask, 'number'));
    refuseToRetry(effect);
    return planned(effect, {});
  },
  async perform(tx, _, { approval, actor }) {
    const { ask, reason, decidedBy } = approval;
    await retryApproved(tx, { number: textOf(ask, 'number'), actor: decidedBy ?? actor, reason });
    return { kind: 'none' };
  },
};

/** No fence and no count of tries: a relay that looks an unknown effect up again changes nothing about what is asked for. */
function planned(effect: EffectRecord, more: Readonly<Record<string, string | null>>) {
  const { number, key, subject, destination, amount, currency, state, code } = effect;
  const { job } = parseKey(key);
  return { subject: number, job, key, plan: { number, subject, destination, amount, currency, state, code, ...more } };
}

async function mustHave(tx: Tx, number: string): Promise<EffectRecord> {
  parseEffectNumber(number);
  const effect = await effectRecord(tx, number);
  if (effect !== null) return effect;
  throw unknownEffect(number);
}

function toldIn(ask: Ask): Pick<Told, 'fate' | 'counterpartyId'> {
  const as = textOf(ask, 'as');
  const fate = FATES_BY_HAND.find((name) => name === as);
  if (fate === undefined) throw new TypeError(`${as} is no outcome`);
  const { counterpartyId } = ask;
  return { fate, counterpartyId: typeof counterpartyId === 'string' ? counterpartyId : null };
}
