import type { Hold, Holds } from '../../jobs/holds.ts';
import type { Job } from '../../jobs/job.ts';
import { parseEffectNumber } from '../../kernel/effect-number.ts';
import { OnceperError } from '../../kernel/error.ts';
import { parseKey } from '../../kernel/key.ts';
import type { Tx } from '../../kernel/sql.ts';
import { appendAct } from '../../store/audit-ledger.ts';
import { type Act, type ActParts, textOf } from './act.ts';

/** Releases the money that an effect has on hold to the next open period, which pays it under that period's number. */
export const releaseHold: Act = {
  kinds: ['release_hold'],
  async plan(tx, parts, ask) {
    const number = textOf(ask, 'number');
    const { job, key, holds } = holdsOf(parts, number);
    const { subject, currency, amount, cause } = await held(tx, holds, number);
    const plan = { number, subject, currency, amount: amount.toString(), cause };
    return { subject: number, job: job.id, key, plan };
  },
  async perform(tx, parts, { approval, actor }) {
    const number = textOf(approval.ask, 'number');
    const { job, key, holds } = holdsOf(parts, number);
    const by = { actor: approval.decidedBy ?? actor, reason: approval.reason };
    const released = await holds.release(tx, { number, ...by });
    if (released.kind !== 'released') throw nothingOnHold(number, released.kind === 'not_held' ? null : released.hold);
    const { amount, currency, release } = released.hold;
    const detail = { amount: amount.toString(), currency, settledBy: release?.period };
    await appendAct(tx, by, { verb: 'release', job: job.id, key, subject: number, detail });
    return { kind: 'none' };
  },
};

function holdsOf({ registry }: ActParts, number: string): { job: Job; key: string; holds: Holds } {
  const { key } = parseEffectNumber(number);
  const job = registry.get(parseKey(key).job);
  if (job.holds !== undefined) return { job, key, holds: job.holds };
  throw nothingOnHold(number, null);
}

async function held(tx: Tx, holds: Holds, number: string): Promise<Hold> {
  const [hold] = await holds.find(tx, [number]);
  if (hold?.state === 'held') return hold;
  throw nothingOnHold(number, hold ?? null);
}

function nothingOnHold(number: string, released: Hold | null): OnceperError {
  const by = released?.release;
  const why =
    by === null || by === undefined
      ? 'the books have nothing of it on hold'
      : `${by.actor} released it to ${by.period} at ${by.at}`;
  return new OnceperError({
    code: 'nothing_on_hold',
    message: `${number} is not released: ${why}`,
    remedy: 'npx onceper hold list names what is on hold',
    at: number,
  });
}
