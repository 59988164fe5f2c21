import type { Tx } from '../../../kernel/sql.ts';
import { type Refusal, refusalsKept } from './refusals.ts';

/**
 * An eighth of what a sum can hold: so far apart, eight imports at once can't pass it together without one of them looking. All
 * that an installation ever imported stays a million times below it.
 */
const NEAR = 2n ** 60n;

/**
 * Whether the sales or refunds of some merchant might get near to what a line can hold. Then the import has a lock until it ends,
 * so that each of several sees what the others stored.
 */
export async function isNearLimit(tx: Tx, magnitude: bigint): Promise<boolean> {
  if ((await storedMagnitude(tx)) + magnitude < NEAR) return false;
  await tx.query(`select pg_advisory_xact_lock(hashtextextended('settlement import sums', 0))`);
  return true;
}

async function storedMagnitude(tx: Tx): Promise<bigint> {
  const { rows } = await tx.query<{ magnitude: string }>(
    'select coalesce(sum(magnitude), 0)::text as magnitude from settlement.import',
  );
  return BigInt(rows[0]?.magnitude ?? '0');
}

/**
 * Merchants of the import whose sales or refunds of a period are now more than a line can hold, each at its first line. No later row
 * could correct that: a refund lowers the net, never the sales; so the file is refused. It reads all rows of the import's
 * merchants in those periods, and is asked only near the limit.
 */
export async function exceedingSums(
  tx: Tx,
  importId: bigint,
): Promise<{ refusals: readonly Refusal[]; total: number }> {
  const { rows } = await tx.query<{
    line: number;
    merchant: string;
    currency: string;
    period: string;
    part: string;
    total: number;
  }>(
    `with touched as (
       select distinct period, merchant, currency from settlement.transaction where import_id = $1
     ), summed as (
       select period, merchant, currency, sum(t.amount) filter (where t.amount > 0) as sales,
              -sum(t.amount) filter (where t.amount < 0) as refunds
         from touched join settlement.transaction t using (period, merchant, currency)
        group by period, merchant, currency
     )
     select f.line, b.merchant, b.currency, b.period,
            case when b.sales > 9223372036854775807 then 'sales' else 'refunds' end as part, (count(*) over ())::int4 as total
       from summed b
      cross join lateral (
            select min(s.line) as line from pg_temp.settlement_stage s
             where s.merchant = b.merchant and s.currency = b.currency) f
      where 9223372036854775807 < any (array[b.sales, b.refunds])
      order by f.line, b.period
      limit $2`,
    [importId, refusalsKept],
  );
  return {
    refusals: rows.map(({ line, merchant, currency, period, part }) => ({
      line,
      reason: `the ${part} of ${merchant} in ${currency} in ${period} add up to more than the ledger can hold`,
    })),
    total: rows[0]?.total ?? 0,
  };
}
