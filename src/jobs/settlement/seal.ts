import { OnceperError } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { GrantedContext } from '../job.ts';
import type { ControlTotals } from './control-totals.ts';
import { carriedMagnitudes, withoutRule } from './currency-check.ts';
import { noFeeRule } from './inspect.ts';
import { parseParameters } from './parameters.ts';
import { type PeriodRow, readPeriod } from './period-row.ts';
import { mayExceed, sumsTooLarge, TOO_LARGE_REMEDY, type Volume } from './sums-check.ts';

/**
 * Seals the period exclusively: it waits for imports that hold the row `for share`, and every later import finds it sealed.
 * Then, in statements that see what those imports committed, takes the control totals, checks that each of their currencies
 * has its fees and that every sum of a line will fit, and stores them: what a slice would certainly refuse is refused here, while it
 * can still be corrected. A period that an earlier fence of the key sealed stays as it is. Throws OnceperError `no_fee_rule`,
 * `sum_too_large`, `period_not_open`; the claim's roll-back opens the period again.
 */
export async function seal(tx: Tx, context: GrantedContext): Promise<void> {
  if (!(await sealOpenPeriod(tx, context))) {
    await checkSealedEarlier(tx, context);
    return;
  }
  const period = await readPeriod(tx, context.period);
  const sealed = await sealedRows(tx, context.period);
  const carried = await carriedMagnitudes(tx, period);
  const currencies = [...sealed.map(({ currency }) => currency), ...carried.keys()];
  const unknown = withoutRule(currencies, parseParameters(context.rule.parameters));
  if (unknown.length > 0) {
    throw new OnceperError({
      code: 'no_fee_rule',
      message: noFeeRule(context.period, unknown),
      remedy: 'add their fees to the rule, or correct the transactions at their source',
      at: context.key,
    });
  }
  await checkSums(tx, context, { period, sealed, carried });
  await storeControlTotals(tx, context, Object.fromEntries(sealed.map(({ currency, totals }) => [currency, totals])));
}

/** A merchant's sums are looked at only in a month in which the sums of all of them might not fit, each currency by itself. */
async function checkSums(
  tx: Tx,
  context: GrantedContext,
  of: {
    readonly period: PeriodRow;
    readonly sealed: readonly SealedRows[];
    readonly carried: ReadonlyMap<string, bigint>;
  },
): Promise<void> {
  const volumes = new Map<string, Volume>(
    [...of.carried].map(([currency, carried]) => [currency, carriedOnly(carried)]),
  );
  for (const { currency, totals, moved } of of.sealed) {
    const { carried } = volumes.get(currency) ?? carriedOnly(0n);
    volumes.set(currency, { transactions: BigInt(totals.transactions), moved, carried });
  }
  if (![...volumes.values()].some((volume) => mayExceed(volume, context))) return;
  const moved = of.sealed.filter(({ totals }) => totals.transactions !== '0').map(({ currency }) => currency);
  const tooLarge = await sumsTooLarge(tx, context, of.period, moved);
  if (tooLarge === null) return;
  throw new OnceperError({ code: 'sum_too_large', message: tooLarge, remedy: TOO_LARGE_REMEDY, at: context.key });
}

function carriedOnly(carried: bigint): Volume {
  return { transactions: 0n, moved: 0n, carried };
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

/** Of one currency: the control totals, and the magnitudes of the rows added up. */
interface SealedRows {
  readonly currency: string;
  readonly totals: ControlTotals[string];
  readonly moved: bigint;
}

/**
 * What the sealed rows are, per currency, in order; amounts as text: a JSON number would pass through a float. A select of its own:
 * inside the update no parallel worker could read a part of it. The sales are summed beside the amounts, since the two give what
 * was moved in all; that costs a tenth of this scan (2 million rows: 1.2 s became 1.4 s on a loaded machine), and saves a second one.
 */
async function sealedRows(tx: Tx, period: string): Promise<readonly SealedRows[]> {
  const { rows } = await tx.query<{ currency: string; sales: string } & ControlTotals[string]>(
    `select currency, coalesce(t.transactions, 0)::text as transactions, coalesce(t.amount, 0)::text as amount,
            coalesce(t.sales, 0)::text as sales, coalesce(a.amount, 0)::text as assigned
       from (select currency, count(*) as transactions, sum(amount) as amount, sum(amount) filter (where amount > 0) as sales
               from settlement.transaction where period = $1 group by currency) t
       full join (select currency, sum(amount) as amount
                    from settlement.assigned_posting where period = $1 group by currency) a using (currency)
      order by currency`,
    [period],
  );
  return rows.map(({ currency, sales, ...totals }) => {
    return { currency, totals, moved: 2n * BigInt(sales) - BigInt(totals.amount) };
  });
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
