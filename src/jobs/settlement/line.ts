import { OnceperError } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { GrantedContext, SliceRange } from '../job.ts';
import { parseParameters } from './parameters.ts';
import type { PeriodRow } from './period-row.ts';

/**
 * Writes a line for every merchant of the slice and currency that has a transaction of the sealed period, a balance in the
 * previous document or an assigned posting of the period, which adds to what is carried in. It reads sealed rows and that
 * document only, never a live balance: derived again after a failover, a line is the same to the digit. A currency without a rule gets a null fee and fails the line's constraint.
 */
export async function writeLines(tx: Tx, context: GrantedContext, period: PeriodRow, slice: SliceRange): Promise<void> {
  if (period.state !== 'sealed') throw notSealed(context, period);
  const { currencies } = parseParameters(context.rule.parameters);
  await tx.query(
    `with rule as (
       select * from unnest($5::text[], $6::int8[], $7::int8[], $8::int8[]) as r (currency, basis_points, fixed, minimum)
     ), moved as (
       select t.merchant, t.currency, count(*) as transactions,
              sum(t.amount) filter (where t.amount > 0) as sales,
              -sum(t.amount) filter (where t.amount < 0) as refunds,
              sum(settlement.fee(t.amount, r.basis_points, r.fixed)) filter (where t.amount > 0) as fees
         from settlement.transaction t
         left join rule r on r.currency = t.currency
        where t.period = $2 and t.merchant between $3 and $4
        group by t.merchant, t.currency
     ), carried as (
       select merchant, currency, sum(carry_in) as carry_in, sum(assigned) as assigned
         from (select merchant, currency, closing as carry_in, 0 as assigned
                 from settlement.line
                where key = $9 and merchant between $3 and $4 and closing <> 0
                union all
               select merchant, currency, amount, amount
                 from settlement.assigned_posting
                where period = $2 and merchant between $3 and $4) brought
        group by merchant, currency
     ), part as (
       select merchant, currency, coalesce(m.transactions, 0) as transactions, coalesce(m.sales, 0) as sales,
              coalesce(m.refunds, 0) as refunds, case when m.sales is null then 0 else m.fees end as fees,
              coalesce(c.carry_in, 0) as carry_in, coalesce(c.assigned, 0) as assigned
         from moved m full join carried c using (merchant, currency)
     ), payable as (
       select p.*, p.sales - p.refunds - p.fees as net, p.sales - p.refunds - p.fees + p.carry_in as payable, r.minimum
         from part p left join rule r on r.currency = p.currency
     )
     insert into settlement.line
            (key, merchant, currency, period, transactions, sales, refunds, fees, net, carry_in, assigned, payout, closing)
     select $1, p.merchant, p.currency, $2, p.transactions, p.sales, p.refunds, p.fees, p.net, p.carry_in, p.assigned,
            o.payout, p.payable - o.payout
       from payable p
      cross join lateral (
            select case when p.minimum is null then null
                        when p.payable > 0 and p.payable >= p.minimum then p.payable else 0 end as payout) o
      order by p.merchant, p.currency`,
    [
      context.key,
      context.period,
      slice.firstSubject,
      slice.lastSubject,
      currencies.map((rule) => rule.currency),
      currencies.map((rule) => rule.basisPoints),
      currencies.map((rule) => rule.fixed),
      currencies.map((rule) => rule.minimum),
      period.previousKey,
    ],
  );
}

function notSealed(context: GrantedContext, period: PeriodRow): OnceperError {
  return new OnceperError({
    code: 'period_not_sealed',
    message: `period ${context.period} is ${period.state}: only sealed rows are settled`,
    remedy: 'the first grant seals it; look for a hand that changed settlement.period',
    at: context.key,
  });
}
