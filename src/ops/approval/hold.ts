import type { Hold, Holds } from '../../jobs/holds.ts';
import type { Job } from '../../jobs/job.ts';
import { parseEffectNumber } from '../../kernel/effect-number.ts';
import { OnceperError } from '../../kernel/error.ts';
import { parseKey } from '../../kernel/key.ts';
import type { Tx } from '../../kernel/sql.ts';
import { appendAct } from '../../store/audit-ledger.ts';
import { type Act, type ActParts, type Ask, textOf } from './act.ts';

/**
 * Releases the money that effects have on hold to the next open period, which pays it under that period's numbers: one effect
 * (`number`), or several of one job (`numbers`) by one request and one decision. All of them or none.
 */
export const releaseHold: Act = {
  kinds: ['release_hold'],
  async plan(tx, parts, ask) {
    const { job, numbers, holds } = holdsOf(parts, ask);
    const held = await allHeld(tx, holds, numbers);
    const plans = held.map(({ number, subject, currency, amount, cause }) => {
      return { number, subject, currency, amount: amount.toString(), cause };
    });
    const keys = [...new Set(held.map(({ key }) => key))];
    const [first, ...others] = numbers;
    return {
      subject: others.length === 0 ? (first ?? '') : `${first ?? ''} and ${others.length} more`,
      job: job.id,
      key: keys.length === 1 ? (keys[0] ?? null) : null,
      plan: typeof ask['number'] === 'string' ? plans[0] : { holds: plans },
    };
  },
  async perform(tx, parts, { approval, actor }) {
    const { job, numbers, holds } = holdsOf(parts, approval.ask);
    const by = { actor: approval.decidedBy ?? actor, reason: approval.reason };
    const released: Hold[] = [];
    for (const number of numbers) released.push(await release(tx, holds, { number, ...by }));
    // After all releases: an entry locks the head of the audit, for which every other process then waits.
    for (const { number, key, amount, currency, release: to } of released) {
      const detail = { amount: amount.toString(), currency, settledBy: to?.period };
      await appendAct(tx, by, { verb: 'release', job: job.id, key, subject: number, detail });
    }
    return { kind: 'none' };
  },
};

async function release(
  tx: Tx,
  holds: Holds,
  ask: { readonly number: string; readonly actor: string; readonly reason: string },
): Promise<Hold> {
  const released = await holds.release(tx, ask);
  if (released.kind === 'released') return released.hold;
  throw nothingOnHold(ask.number, released.kind === 'not_held' ? null : released.hold);
}

/** The effects that are asked for, in one order whatever order they were typed in, and what their job can say of them. */
function holdsOf({ registry }: ActParts, ask: Ask): { job: Job; numbers: readonly string[]; holds: Holds } {
  const numbers = numbersIn(ask);
  const jobs = [...new Set(numbers.map((number) => parseKey(parseEffectNumber(number).key).job))];
  const [first = '', second] = jobs;
  const job = registry.get(first);
  if (second === undefined && job.holds !== undefined) return { job, numbers, holds: job.holds };
  throw nothingOnHold(numbers[0] ?? '', null);
}

function numbersIn(ask: Ask): string[] {
  const { numbers } = ask;
  if (!Array.isArray(numbers)) return [textOf(ask, 'number')];
  const all = numbers.filter((number) => typeof number === 'string');
  if (all.length === numbers.length && all.length > 0) return [...new Set(all)].sort();
  throw new TypeError('the request has no numbers');
}

async function allHeld(tx: Tx, holds: Holds, numbers: readonly string[]): Promise<Hold[]> {
  const found = new Map((await holds.find(tx, numbers)).map((hold) => [hold.number, hold]));
  return numbers.map((number) => {
    const hold = found.get(number);
    if (hold?.state === 'held') return hold;
    throw nothingOnHold(number, hold ?? null);
  });
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
