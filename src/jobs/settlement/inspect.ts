import type { Inspection } from '../../kernel/admission.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { JobContext } from '../job.ts';
import { carriedMagnitudes, currenciesWithoutRule } from './currency-check.ts';
import { currenciesMoved } from './line.ts';
import { parseParameters } from './parameters.ts';
import { type PeriodRow, readPeriod } from './period-row.ts';
import { mayExceed, sumsTooLarge, TOO_LARGE_REMEDY, type Volume } from './sums-check.ts';

/**
 * What open asks before it admits a key: `held` with `no_fee_rule` where a currency of the period has no fees in the rule, with
 * `sum_too_large` where a sum of some merchant is beyond what a line can hold, or with `empty` where no transaction, balance or
 * assigned posting is there and nobody confirmed it by `--set empty=true`. It locks nothing, so rows may still enter: the seal checks
 * currencies and sums again.
 */
export async function inspect(tx: Tx, context: JobContext): Promise<Inspection> {
  const period = await readPeriod(tx, context.period);
  const carried = await carriedMagnitudes(tx, period);
  const unknown = await currenciesWithoutRule(tx, { period, carried }, parseParameters(context.rule.parameters));
  if (unknown.length > 0) {
    return { kind: 'held', code: 'no_fee_rule', reason: noFeeRule(context.period, unknown) };
  }
  if (mayExceed(await importedVolume(tx, carried), context)) {
    const tooLarge = await sumsTooLarge(tx, context, period, await currenciesMoved(tx, period));
    if (tooLarge !== null) {
      return { kind: 'held', code: 'sum_too_large', reason: `${tooLarge}; ${TOO_LARGE_REMEDY}` };
    }
  }
  if (context.overrides['empty'] !== 'true' && (await isEmpty(tx, period))) {
    return {
      kind: 'held',
      code: 'empty',
      reason: `${context.period} has no transaction and no balance; confirm it with --set empty=true`,
    };
  }
  return { kind: 'ready' };
}

/** One sentence for both places that find it. */
export function noFeeRule(period: string, currencies: readonly string[]): string {
  return `${period} has amounts in ${currencies.join(', ')}, for which the rule has no fees`;
}

/**
 * What all imports together brought, so that no row of the period is read: over all periods and currencies, which is far more than
 * the period has and far less than a sum can hold. What no import of this release counted is found by the seal, which reads all rows.
 */
async function importedVolume(tx: Tx, carried: ReadonlyMap<string, bigint>): Promise<Volume> {
  const { rows } = await tx.query<{ transactions: string; moved: string }>(
    `select coalesce(sum(added), 0)::text as transactions, coalesce(sum(magnitude), 0)::text as moved from settlement.import`,
  );
  const [row] = rows;
  const brought = [...carried.values()].reduce((sum, magnitude) => sum + magnitude, 0n);
  return { transactions: BigInt(row?.transactions ?? '0'), moved: BigInt(row?.moved ?? '0'), carried: brought };
}

async function isEmpty(tx: Tx, period: PeriodRow): Promise<boolean> {
  const { rows } = await tx.query<{ empty: boolean }>(
    `select not exists (select from settlement.transaction where period = $1)
        and not exists (select from settlement.line where key = $2 and closing <> 0)
        and not exists (select from settlement.assigned_posting where period = $1) as empty`,
    [period.period, period.previousKey],
  );
  return rows[0]?.empty ?? true;
}
