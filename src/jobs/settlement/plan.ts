import type { Tx } from '../../kernel/sql.ts';
import type { GrantedContext, SliceRange } from '../job.ts';
import { parseControlTotals } from './control-totals.ts';
import { type PeriodRow, readPeriod } from './period-row.ts';

/**
 * A group handed from a worker to the leader costs the planner a tenth of a page by default, so that it reads a million
 * merchants of ten million rows in one process: 2.9 s. With what such a tuple really costs it takes both cores: 1.6 s.
 */
const PARALLEL = 'set local parallel_tuple_cost = 0.005';

/**
 * The slices of the sealed period: every merchant with a transaction, a balance carried in or an assigned posting is in exactly
 * one, in key order, `subjectsPerSlice` known merchants each. A period without any has none.
 */
export async function plan(tx: Tx, context: GrantedContext): Promise<readonly SliceRange[]> {
  const period = await readPeriod(tx, context.period);
  const { subjectsPerSlice } = context.rule;
  // All merchants are found ten times as fast as those that moved. Where most did not, a slice of them would be empty; with a
  // transaction for each on average, a slice has as much to do however unevenly they are spread.
  return (await countMerchants(tx)) <= transactionsOf(period)
    ? slicesOfMerchants(tx, subjectsPerSlice)
    : slicesOfMoved(tx, period, subjectsPerSlice);
}

function transactionsOf({ sealedTotals }: PeriodRow): bigint {
  const totals = Object.values(parseControlTotals(sealedTotals ?? {}));
  return totals.reduce((sum, { transactions }) => sum + BigInt(transactions), 0n);
}

async function countMerchants(tx: Tx): Promise<bigint> {
  const { rows } = await tx.query<{ merchants: bigint }>('select count(*) as merchants from settlement.merchant');
  return rows[0]?.merchants ?? 0n;
}

/** Whoever has a row of any kind was imported with a row of settlement.merchant, in the same transaction. */
async function slicesOfMerchants(tx: Tx, subjectsPerSlice: number): Promise<readonly SliceRange[]> {
  const { rows } = await tx.query<SliceRange>(
    `with numbered as (
       select id as merchant, (row_number() over (order by id) - 1) / $1 + 1 as slice from settlement.merchant
     )
     ${RANGES}`,
    [subjectsPerSlice],
  );
  return rows;
}

async function slicesOfMoved(tx: Tx, period: PeriodRow, subjectsPerSlice: number): Promise<readonly SliceRange[]> {
  await tx.query(PARALLEL);
  const { rows } = await tx.query<SliceRange>(
    `with moved as materialized (
       select merchant from settlement.transaction where period = $1 group by merchant order by merchant
     ), subject as (
       select merchant from moved
        union
       select merchant from settlement.line where key = $2 and closing <> 0
        union
       select merchant from settlement.assigned_posting where period = $1
     ), numbered as (
       select merchant, (row_number() over (order by merchant) - 1) / $3 + 1 as slice from subject
     )
     ${RANGES}`,
    [period.period, period.previousKey, subjectsPerSlice],
  );
  return rows;
}

const RANGES = `
  select slice::int4 as slice, min(merchant) as "firstSubject", max(merchant) as "lastSubject"
    from numbered
   group by slice
   order by slice`;
