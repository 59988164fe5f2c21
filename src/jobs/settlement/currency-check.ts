import type { Tx } from '../../kernel/sql.ts';
import type { SettlementParameters } from './parameters.ts';
import type { PeriodRow } from './period-row.ts';

/** Those of the currencies that the rule has no fees for, in order, each once. */
export function withoutRule(currencies: readonly string[], { currencies: rules }: SettlementParameters): string[] {
  const known = new Set(rules.map((rule) => rule.currency));
  return [...new Set(currencies)].filter((currency) => !known.has(currency)).sort();
}

/**
 * What a period carries in, per currency: the magnitudes of the balances, and of the postings that are assigned to it, added up.
 */
export async function carriedMagnitudes(tx: Tx, period: PeriodRow): Promise<ReadonlyMap<string, bigint>> {
  const { rows } = await tx.query<{ currency: string; magnitude: string }>(
    `select currency, sum(abs(amount::numeric))::text as magnitude
       from (select currency, closing as amount from settlement.line where key = $1 and closing <> 0
              union all
             select currency, amount from settlement.assigned_posting where period = $2) brought
      group by currency`,
    [period.previousKey, period.period],
  );
  return new Map(rows.map(({ currency, magnitude }) => [currency, BigInt(magnitude)]));
}

/**
 * The currencies that the period would settle (of its rows, the balances it carries in, the postings assigned to it) and that the rule has no fees
 * for, in order. Without a rule neither the fee nor the least payout is known, so nothing of the period may be guessed. The
 * period's rows are read only for a currency that some import brought and that the rule lacks: there is none in most months,
 * and ten million rows take a second. A row that no import brought is found by the seal, which reads them all.
 */
export async function currenciesWithoutRule(
  tx: Tx,
  { period, carried }: { readonly period: PeriodRow; readonly carried: ReadonlyMap<string, bigint> },
  parameters: SettlementParameters,
): Promise<readonly string[]> {
  const candidates = withoutRule(await importedCurrencies(tx), parameters);
  const present = candidates.length === 0 ? [] : await currenciesAmong(tx, period.period, candidates);
  return withoutRule([...present, ...carried.keys()], parameters);
}

async function importedCurrencies(tx: Tx): Promise<readonly string[]> {
  const { rows } = await tx.query<{ currency: string }>(
    'select distinct unnest(currencies) as currency from settlement.import',
  );
  return rows.map((row) => row.currency);
}

async function currenciesAmong(tx: Tx, period: string, candidates: readonly string[]): Promise<readonly string[]> {
  const { rows } = await tx.query<{ currency: string }>(
    'select distinct currency from settlement.transaction where period = $1 and currency = any ($2::text[])',
    [period, candidates],
  );
  return rows.map((row) => row.currency);
}
