import type { Tx } from '../../../kernel/sql.ts';
import { type Refusal, refusalsKept } from './refusals.ts';

/** Stores the merchants of the staged rows that are new, in the order of their ids, each under the name first seen. */
export async function storeMerchants(tx: Tx, source: string): Promise<void> {
  await tx.query(
    `with first as (
       select merchant, min(line) as line from pg_temp.settlement_stage group by merchant
     )
     insert into settlement.merchant (id, source, name, canonical_name)
     select s.merchant, $1, coalesce(s.name, s.merchant), s.canonical_name
       from first f
       join pg_temp.settlement_stage s on s.line = f.line
      where not exists (select from settlement.merchant m where m.id = f.merchant)
      order by s.merchant
         on conflict (id) do nothing`,
    [source],
  );
}

/**
 * Rows whose derived merchant id belongs to another name already, in this file or before it: two names would share one
 * balance and one payout, so the file is refused.
 */
export async function collidingMerchants(tx: Tx): Promise<{ refusals: readonly Refusal[]; total: number }> {
  const { rows } = await tx.query<{ line: number; id: string; name: string; stored: string; total: number }>(
    `select s.line, s.merchant as id, s.name, m.name as stored, (count(*) over ())::int4 as total
       from pg_temp.settlement_stage s
       join settlement.merchant m on m.id = s.merchant
      where s.canonical_name is not null and m.canonical_name is distinct from s.canonical_name
      order by s.line
      limit $1`,
    [refusalsKept],
  );
  return {
    refusals: rows.map(({ line, id, name, stored }) => ({
      line,
      reason: `the merchants '${name}' and '${stored}' derive the same id ${id}`,
    })),
    total: rows[0]?.total ?? 0,
  };
}
