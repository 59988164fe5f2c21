import type { Registry } from '../jobs/registry.ts';
import { type Database, transaction } from '../store/database.ts';
import { inOneSnapshot, unfinishedMoney } from '../store/outbox-money.ts';
import { webhooksForAPerson } from '../store/webhooks.ts';
import { type Check, fail, ok } from './check.ts';

/** Adding up a million frozen bodies takes seconds, not minutes. */
const LOOK = { label: 'doctor', statementTimeout: 60_000 };

/**
 * Compares what a job's books say is on its way with what the outbox has not finished, at one moment: one of the two was
 * changed by a hand or a restore where they differ. No row where the job's effects move no money.
 */
export async function checkInTransit(db: Database, registry: Registry, job: string): Promise<readonly Check[]> {
  const known = registry.get(job);
  if (known.inTransit === undefined) return [];
  const { books, outbox } = await transaction(db, LOOK, async (tx) => {
    await inOneSnapshot(tx);
    return { books: (await known.inTransit?.(tx)) ?? {}, outbox: await unfinishedMoney(tx, job) };
  });
  const check = `in transit of ${job}`;
  const currencies = [...new Set([...Object.keys(books), ...Object.keys(outbox.amounts)])].sort();
  const differences = currencies.flatMap((currency) => {
    const [booked, unfinished] = [books[currency] ?? 0n, outbox.amounts[currency] ?? 0n];
    return booked === unfinished ? [] : [`${currency} ${booked} by the books, ${unfinished} in the outbox`];
  });
  if (outbox.unreadable > 0) differences.push(`${outbox.unreadable} unfinished effects state no money`);
  if (differences.length === 0) return [ok(check, 'the books and the outbox agree')];
  return [
    fail(check, differences.join('; '), 'stop the relay, and look for a restored table or a hand that changed rows'),
  ];
}

const MOST = 1_000;

/**
 * Payouts that failed or came back, and whose money is on hold: nobody is paid by waiting, a person releases it. No row where a
 * job keeps none.
 */
export async function checkHolds(db: Database, registry: Registry, job: string): Promise<readonly Check[]> {
  const { holds } = registry.get(job);
  if (holds === undefined) return [];
  const held = await holds.list(db, { states: ['held'], key: null, after: null, limit: MOST });
  if (held.length === 0) return [ok(`holds of ${job}`, 'nothing is on hold')];
  const keys = [...new Set(held.map(({ key }) => key))];
  const count = held.length === MOST ? `${MOST} or more` : String(held.length);
  const detail = `the money of ${count} payouts is on hold, of ${keys.slice(0, 3).join(', ')}${keys.length > 3 ? ' and others' : ''}`;
  return [fail(`holds of ${job}`, detail, `npx onceper hold list${job === 'settlement' ? '' : ` --job ${job}`}`)];
}

/** Messages of a counterparty that could not be applied, and so may know of money that this ledger does not. */
export async function checkWebhooks(db: Database): Promise<Check> {
  const waiting = await webhooksForAPerson(db, MOST);
  if (waiting.length === 0) return ok('webhooks', 'none waits for a person');
  const codes = [...new Set(waiting.map(({ code }) => code ?? ''))].sort().join(', ');
  const count = waiting.length === MOST ? `${MOST} or more` : String(waiting.length);
  const [first] = waiting.filter(({ detail }) => detail !== null);
  const such = first === undefined ? '' : `; ${first.number ?? first.id}: ${first.detail ?? ''}`;
  return fail('webhooks', `${count} could not be applied: ${codes}${such}`, 'npx onceper outbox list');
}
