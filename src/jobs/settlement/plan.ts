import type { Tx } from '../../kernel/sql.ts';
import type { GrantedContext, SliceRange } from '../job.ts';
import { readPeriod } from './period-row.ts';

/**
 * The slices of the sealed period: every merchant with a transaction or with a balance carried in is in exactly one, in key
 * order, `subjectsPerSlice` of them each. A period without either has none.
 */
export async function plan(tx: Tx, context: GrantedContext): Promise<readonly SliceRange[]> {
  const { previousKey } = await readPeriod(tx, context.period);
  const { rows } = await tx.query<SliceRange>(
    `with subject as (
       select merchant from settlement.transaction where period = $1
        union
       select merchant from settlement.line where key = $2 and closing <> 0
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
