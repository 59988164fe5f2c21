import { OnceperError } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { JobContext } from '../job.ts';
import { holdNextOpen } from './period-row.ts';

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
  const next = await holdNextOpen(tx, { key, period });
  await moveTransactions(tx, period, next);
  await movePostings(tx, period, next);
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
