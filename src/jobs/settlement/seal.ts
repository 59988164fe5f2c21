import { OnceperError } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { GrantedContext } from '../job.ts';
import type { ControlTotals } from './control-totals.ts';
import { carriedCurrencies, withoutRule } from './currency-check.ts';
import { noFeeRule } from './inspect.ts';
import { parseParameters } from './parameters.ts';
import { readPeriod } from './period-row.ts';

/**
 * Seals the period exclusively: it waits for imports that hold the row `for share`, and every later import finds it sealed.
 * Then, in statements that see what those imports committed, takes the control totals, checks that each of their currencies
 * has its fees, and stores them. A period
 * that an earlier fence of the key sealed stays as it is. Throws OnceperError `no_fee_rule`, `period_not_open`; the claim's
 * roll-back opens the period again.
 */
export async function seal(tx: Tx, context: GrantedContext): Promise<void> {
  if (!(await sealOpenPeriod(tx, context))) {
    await checkSealedEarlier(tx, context);
    return;
  }
  const period = await readPeriod(tx, context.period);
  const totals = await controlTotals(tx, context.period);
  const balances = await carriedCurrencies(tx, period);
  const unknown = withoutRule([...Object.keys(totals), ...balances], parseParameters(context.rule.parameters));
  if (unknown.length > 0) {
    throw new OnceperError({
      code: 'no_fee_rule',
      message: noFeeRule(context.period, unknown),
      remedy: 'add their fees to the rule, or correct the transactions at their source',
      at: context.key,
    });
  }
  await storeControlTotals(tx, context, totals);
}

async function sealOpenPeriod(tx: Tx, context: GrantedContext): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update settlement.period set state = 'sealed', sealed_by_fence = $2, sealed_at = clock_timestamp()
      where period = $1 and state = 'open'`,
    [context.period, context.fence],
  );
  return rowCount === 1;
}

/**
 * A fence up to ours has sealed it: an earlier grant of this key, or a claim that raced us and whose lock on the action will
 * turn us away. A seal that was rolled back leaves no trace, so nothing else can be behind it.
 */
async function checkSealedEarlier(tx: Tx, context: GrantedContext): Promise<void> {
  const { state, sealedByFence } = await readPeriod(tx, context.period);
  if (state === 'sealed' && sealedByFence !== null && sealedByFence <= context.fence) return;
  throw new OnceperError({
    code: 'period_not_open',
    message: `period ${context.period} is ${state}${state === 'sealed' ? ` by fence ${sealedByFence}` : ''}, so it can't be sealed`,
    remedy: 'read it with: npx onceper why; a period is settled by its own key alone',
    at: context.key,
  });
}

/**
 * What the sealed rows are, per currency; amounts as text: a JSON number would pass through a float. A select of its own: inside
 * the update no parallel worker could read a part of it.
 */
async function controlTotals(tx: Tx, period: string): Promise<ControlTotals> {
  const { rows } = await tx.query<{ currency: string } & ControlTotals[string]>(
    `select currency, coalesce(t.transactions, 0)::text as transactions, coalesce(t.amount, 0)::text as amount,
            coalesce(a.amount, 0)::text as assigned
       from (select currency, count(*) as transactions, sum(amount) as amount
               from settlement.transaction where period = $1 group by currency) t
       full join (select currency, sum(amount) as amount
                    from settlement.assigned_posting where period = $1 group by currency) a using (currency)
      order by currency`,
    [period],
  );
  return Object.fromEntries(rows.map(({ currency, ...totals }) => [currency, totals]));
}

async function storeControlTotals(tx: Tx, context: GrantedContext, totals: ControlTotals): Promise<void> {
  const { rowCount } = await tx.query(
    `update settlement.period set sealed_totals = $3
      where period = $1 and state = 'sealed' and sealed_by_fence = $2`,
    [context.period, context.fence, JSON.stringify(totals)],
  );
  if (rowCount === 1) return;
  throw new OnceperError({
    code: 'period_not_open',
    message: `period ${context.period} lost its seal in the transaction that set it`,
    remedy: 'look for a hand that changed settlement.period',
    at: context.key,
  });
}
