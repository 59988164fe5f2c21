import { OnceperError } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { Estimate, GrantedContext, JobContext, SliceRange } from '../job.ts';
import { parseParameters } from './parameters.ts';
import { findPeriod, type PeriodRow } from './period-row.ts';

/**
 * Writes a line for every merchant of the slice and currency that has a transaction of the sealed period, a balance in the
 * previous document or an assigned posting of the period, which adds to what is carried in. It reads sealed rows and that
 * document only, never a live balance: derived again after a failover, a line is the same to the digit. A currency without a rule gets a null fee and fails the line's constraint.
 */
export async function writeLines(tx: Tx, context: GrantedContext, period: PeriodRow, slice: SliceRange): Promise<void> {
  if (period.state !== 'sealed') throw notSealed(context, period);
  await tx.query(
    `${LINE}
     insert into settlement.line
            (key, merchant, currency, period, transactions, sales, refunds, fees, net, carry_in, assigned, payout, closing)
     select $9, merchant, currency, $1, transactions, sales, refunds, fees, net, carry_in, assigned, payout, closing
       from line
      order by merchant, currency`,
    [...valuesOf(context, period.previousKey, slice), context.key],
  );
}

/**
 * What the lines of a period would come to as its rows stand: how many merchants, and the sums that close adds up, by the same
 * select that writes them. A period without a row has none yet.
 */
export async function estimate(tx: Tx, context: JobContext): Promise<Estimate> {
  const period = await findPeriod(tx, context.period);
  if (period === null) return { subjects: 0, amounts: {} };
  const { rows } = await tx.query<{ subjects: number; currency: string | null; sums: Sums }>(
    `${LINE}
     select currency, count(distinct merchant)::int4 as subjects, jsonb_build_object(
              'sales', coalesce(sum(sales), 0)::text, 'refunds', coalesce(sum(refunds), 0)::text,
              'fees', coalesce(sum(fees), 0)::text, 'net', coalesce(sum(net), 0)::text,
              'carryIn', coalesce(sum(carry_in), 0)::text, 'payout', coalesce(sum(payout), 0)::text,
              'closing', coalesce(sum(closing), 0)::text) as sums
       from line
      group by grouping sets ((currency), ())
      order by currency nulls last`,
    valuesOf(context, period.previousKey, EVERYBODY),
  );
  return {
    subjects: rows.find((row) => row.currency === null)?.subjects ?? 0,
    amounts: Object.fromEntries(rows.flatMap(({ currency, sums }) => (currency === null ? [] : [[currency, sums]]))),
  };
}

type Sums = Readonly<Record<'sales' | 'refunds' | 'fees' | 'net' | 'carryIn' | 'payout' | 'closing', string>>;

/** Around every id of a merchant: they are of lower case, figures and hyphens, in collation "C". */
const EVERYBODY = { firstSubject: '', lastSubject: '~' };

function valuesOf(
  { period, rule }: JobContext,
  previousKey: string | null,
  { firstSubject, lastSubject }: Pick<SliceRange, 'firstSubject' | 'lastSubject'>,
): unknown[] {
  const { currencies } = parseParameters(rule.parameters);
  return [
    period,
    firstSubject,
    lastSubject,
    currencies.map((rule) => rule.currency),
    currencies.map((rule) => rule.basisPoints),
    currencies.map((rule) => rule.fixed),
    currencies.map((rule) => rule.minimum),
    previousKey,
  ];
}

/** The lines of a range of merchants as they follow from the period's rows. */
const LINE = `
  with rule as (
    select * from unnest($4::text[], $5::int8[], $6::int8[], $7::int8[]) as r (currency, basis_points, fixed, minimum)
  ), moved as (
    select t.merchant, t.currency, count(*) as transactions,
           sum(t.amount) filter (where t.amount > 0) as sales,
           -sum(t.amount) filter (where t.amount < 0) as refunds,
           sum(settlement.fee(t.amount, r.basis_points, r.fixed)) filter (where t.amount > 0) as fees
      from settlement.transaction t
      left join rule r on r.currency = t.currency
     where t.period = $1 and t.merchant between $2 and $3
     group by t.merchant, t.currency
  ), carried as (
    select merchant, currency, sum(carry_in) as carry_in, sum(assigned) as assigned
      from (select merchant, currency, closing as carry_in, 0 as assigned
              from settlement.line
             where key = $8 and merchant between $2 and $3 and closing <> 0
             union all
            select merchant, currency, amount, amount
              from settlement.assigned_posting
             where period = $1 and merchant between $2 and $3) brought
     group by merchant, currency
  ), part as (
    select merchant, currency, coalesce(m.transactions, 0) as transactions, coalesce(m.sales, 0) as sales,
           coalesce(m.refunds, 0) as refunds, case when m.sales is null then 0 else m.fees end as fees,
           coalesce(c.carry_in, 0) as carry_in, coalesce(c.assigned, 0) as assigned
      from moved m full join carried c using (merchant, currency)
  ), payable as (
    select p.*, p.sales - p.refunds - p.fees as net, p.sales - p.refunds - p.fees + p.carry_in as payable, r.minimum
      from part p left join rule r on r.currency = p.currency
  ), line as (
    select p.merchant, p.currency, p.transactions, p.sales, p.refunds, p.fees, p.net, p.carry_in, p.assigned,
           o.payout, p.payable - o.payout as closing
      from payable p
     cross join lateral (
           select case when p.minimum is null then null
                       when p.payable > 0 and p.payable >= p.minimum then p.payable else 0 end as payout) o
  )`;

function notSealed(context: GrantedContext, period: PeriodRow): OnceperError {
  return new OnceperError({
    code: 'period_not_sealed',
    message: `period ${context.period} is ${period.state}: only sealed rows are settled`,
    remedy: 'the first grant seals it; look for a hand that changed settlement.period',
    at: context.key,
  });
}
