import type { Inspection } from '../../kernel/admission.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { JobContext } from '../job.ts';
import { currenciesWithoutRule } from './currency-check.ts';
import { parseParameters } from './parameters.ts';
import { type PeriodRow, readPeriod } from './period-row.ts';

/**
 * What open asks before it admits a key: `held` with `no_fee_rule` where a currency of the period has no fees in the rule, or
 * with `empty` where no transaction, balance or assigned posting is there and nobody confirmed it by `--set empty=true`. It locks nothing,
 * so rows may still enter: the seal checks the currencies again.
 */
export async function inspect(tx: Tx, context: JobContext): Promise<Inspection> {
  const period = await readPeriod(tx, context.period);
  const unknown = await currenciesWithoutRule(tx, period, parseParameters(context.rule.parameters));
  if (unknown.length > 0) {
    return { kind: 'held', code: 'no_fee_rule', reason: noFeeRule(context.period, unknown) };
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

async function isEmpty(tx: Tx, period: PeriodRow): Promise<boolean> {
  const { rows } = await tx.query<{ empty: boolean }>(
    `select not exists (select from settlement.transaction where period = $1)
        and not exists (select from settlement.line where key = $2 and closing <> 0)
        and not exists (select from settlement.assigned_posting where period = $1) as empty`,
    [period.period, period.previousKey],
  );
  return rows[0]?.empty ?? true;
}
