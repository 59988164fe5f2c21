import { OnceperError } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { JobContext } from '../job.ts';

/**
 * Closes a period that is skipped, and moves its transactions and assigned postings on to the next open one, where each is
 * settled once: a transaction as late, with the period it comes from. Takes the period exclusively, as a seal does, and then
 * the next one against a seal until the commit. Throws OnceperError `period_missing`, `period_not_open`.
 */
export async function skip(tx: Tx, { key, period }: Pick<JobContext, 'key' | 'period'>): Promise<void> {
  const { rowCount } = await tx.query(
    `update settlement.period set state = 'skipped' where period = $1 and state in ('open', 'sealed')`,
    [period],
  );
  if (rowCount !== 1) {
    throw new OnceperError({
      code: 'period_not_open',
      message: `period ${period} is closed or has no row, so it can't be skipped`,
      remedy: `npx onceper why ${key}`,
      at: key,
    });
  }
  const next = await nextOpen(tx, period, key);
  await moveTransactions(tx, period, next);
  await movePostings(tx, period, next);
}

/** No state in the locking `where`: it would drop the row of a period that was sealed while we waited (import/place.ts). */
async function nextOpen(tx: Tx, period: string, key: string): Promise<string> {
  const { rows } = await tx.query<{ period: string }>(
    `with later as materialized (
       select period, starts, state from settlement.period
        where starts > (select starts from settlement.period where period = $1)
        order by starts for share
     )
     select period from later where state = 'open' order by starts limit 1`,
    [period],
  );
  const [row] = rows;
  if (row !== undefined) return row.period;
  throw new OnceperError({
    code: 'period_missing',
    message: `no open period after ${period} takes its rows`,
    remedy: 'open or import makes the rows of later periods: import something, or wait for the next tick',
    at: key,
  });
}

async function moveTransactions(tx: Tx, from: string, to: string): Promise<void> {
  await tx.query(
    `update settlement.transaction set period = $2, late_from = coalesce(late_from, period) where period = $1`,
    [from, to],
  );
}

async function movePostings(tx: Tx, from: string, to: string): Promise<void> {
  await tx.query('update settlement.assigned_posting set period = $2 where period = $1', [from, to]);
}
