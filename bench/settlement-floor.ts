import type { Database } from '../src/store/database.ts';
import { transaction } from '../src/store/database.ts';

const AT_ONCE = 2;
const MERCHANTS_A_SLICE = 10_000;

/**
 * The best that we can write by hand: ranges of the merchants that there are, two connections, each range one transaction of
 * one statement that reads the covering index once and writes the same lines, postings and effects, in key order, into the
 * same tables. No fence, no lease, no plan that is stored, no result a slice, no control totals, no Temporal, no document.
 */
export async function settleByHand(db: Database, key: string, period: string): Promise<number> {
  const { rows: ranges } = await db.query<{ first: string; last: string }>(
    `select min(id) as first, max(id) as last
       from (select id, (row_number() over (order by id) - 1) / $1 as slice from settlement.merchant) n
      group by slice order by slice desc`,
    [MERCHANTS_A_SLICE],
  );
  const lane = async () => {
    for (let range = ranges.pop(); range !== undefined; range = ranges.pop()) {
      const { first, last } = range;
      await transaction(db, { label: 'floor' }, (tx) => tx.query(SLICE, [key, period, first, last]));
    }
  };
  const count = ranges.length;
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return count;
}

/** One fee rule, GBP, as constants; the product joins its rule. */
const SLICE = `
  with line as materialized (
    select merchant, 'GBP' as currency, count(*) as transactions,
           coalesce(sum(amount) filter (where amount > 0), 0)::int8 as sales,
           coalesce(-sum(amount) filter (where amount < 0), 0)::int8 as refunds,
           coalesce(sum(settlement.fee(amount, 150, 20)) filter (where amount > 0), 0)::int8 as fees
      from settlement.transaction
     where period = $2 and merchant between $3 and $4 and currency = 'GBP'
     group by merchant
     order by merchant
  ), amount as materialized (
    select *, sales - refunds - fees as net, case when sales - refunds - fees >= 100 then sales - refunds - fees else 0 end as payout
      from line
  ), lines as (
    insert into settlement.line (key, merchant, currency, period, transactions, sales, refunds, fees, net, carry_in, payout, closing)
    select $1, merchant, currency, $2, transactions, sales, refunds, fees, net, 0, payout, net - payout from amount
  ), postings as (
    insert into settlement.posting (key, merchant, currency, kind, debit, credit, amount)
    select $1, a.merchant, a.currency, p.kind, p.debit, p.credit, p.amount
      from amount a
     cross join lateral (values
           ('fee', 'payable', 'fees', a.fees),
           ('payout', 'payable', 'in_transit', a.payout),
           ('refund', 'payable', 'clearing', a.refunds),
           ('sale', 'clearing', 'payable', a.sales)) as p (kind, debit, credit, amount)
     where p.amount > 0
  )
  insert into onceper.outbox (number, key, subject, effect, destination, body, written_by_fence)
  select number, $1, merchant, 'payout', merchant,
         '{"amount":"' || payout || '","currency":"' || currency || '","destination":"' || merchant || '","reference":"' || number || '"}', 1
    from (select $1 || ':' || merchant || ':' || currency || ':payout' as number, merchant, currency, payout from amount where payout > 0) e`;
