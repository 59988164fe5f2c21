import type { Tx } from '../kernel/sql.ts';
import { MOVES_MONEY } from './outbox-conditions.ts';

/** Money of a job's effects that have no fate; `unreadable` bodies state none. */
export interface UnfinishedMoney {
  /** Per currency, in minor units. */
  readonly amounts: Readonly<Record<string, bigint>>;
  readonly unreadable: number;
}

/**
 * Makes every statement of a transaction see one state of the database; call it first. Two books that are compared
 * statement by statement would differ by what is delivered in between.
 */
export async function inOneSnapshot(tx: Tx): Promise<void> {
  await tx.query('set transaction isolation level repeatable read, read only');
}

/**
 * Adds up the frozen bodies of a job's effects without a fate. Walks the outbox: for an operator's question. A body is
 * canonical JSON, so its members are found by their text; a cast to jsonb would end the question at the first broken one.
 */
export async function unfinishedMoney(tx: Tx, job: string): Promise<UnfinishedMoney> {
  const { rows } = await tx.query<{ currency: string | null; amount: bigint | null; count: number }>(
    `select currency, sum(amount)::int8 as amount, count(*)::int4 as count
       from (select substring(o.body from '"currency":"([A-Z]{3})"') as currency,
                    substring(o.body from '"amount":"([0-9]{1,18})"')::int8 as amount
               from onceper.outbox o join onceper.action a on a.key = o.key
              where a.job = $1 and o.state not in ('succeeded', 'failed', 'returned') and ${MOVES_MONEY}) unfinished
      group by 1`,
    [job],
  );
  const amounts: Record<string, bigint> = {};
  let unreadable = 0;
  for (const { currency, amount, count } of rows) {
    if (currency === null || amount === null) unreadable += count;
    else amounts[currency] = amount;
  }
  return { amounts, unreadable };
}
