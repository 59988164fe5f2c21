import type { Tx } from '../../kernel/sql.ts';
import type { GrantedContext, SliceRange } from '../job.ts';
import { readPeriod } from './period-row.ts';

/**
 * A group handed from a worker to the leader costs the planner a tenth of a page by default, so that it reads a million
 * merchants of ten million rows in one process: 2.9 s. With what such a tuple really costs it takes both cores: 1.6 s.
 */
const PARALLEL = 'set local parallel_tuple_cost = 0.005';

/**
 * The slices of the sealed period: every merchant with a transaction, a balance carried in or an assigned posting is in exactly
 * one, in key order, `subjectsPerSlice` of them each. A period without any has none.
 */
export async function plan(tx: Tx, context: GrantedContext): Promise<readonly SliceRange[]> {
  const { previousKey } = await readPeriod(tx, context.period);
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
     select slice::int4 as slice, min(merchant) as "firstSubject", max(merchant) as "lastSubject"
       from numbered
      group by slice
      order by slice`,
    [context.period, previousKey, context.rule.subjectsPerSlice],
  );
  return rows;
}
