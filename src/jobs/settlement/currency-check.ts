import type { Tx } from '../../kernel/sql.ts';
import type { SettlementParameters } from './parameters.ts';
import type { PeriodRow } from './period-row.ts';

/**
 * The currencies that the period would settle (of its rows, and of the balances it carries in) and that the rule has no fees
 * for, in order. Without a rule neither the fee nor the least payout is known, so nothing of the period may be guessed.
 */
export async function currenciesWithoutRule(
  tx: Tx,
  period: PeriodRow,
  parameters: SettlementParameters,
): Promise<readonly string[]> {
  const { rows } = await tx.query<{ currency: string }>(
    `select currency from settlement.transaction where period = $1 and currency <> all ($3::text[])
      union
     select currency from settlement.line where key = $2 and closing <> 0 and currency <> all ($3::text[])
      order by currency`,
    [period.period, period.previousKey, parameters.currencies.map((rule) => rule.currency)],
  );
  return rows.map((row) => row.currency);
}
