import { OnceperError } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { GrantedContext } from '../job.ts';
import { parseControlTotals } from './control-totals.ts';
import { documentId, insertDocument, sha256 } from './document.ts';
import { readPeriod } from './period-row.ts';
import { type LineTotals, parseSliceResult, type SliceResult } from './slice-result.ts';

/** Totals of one currency in a settlement document, minor units as text. */
type DocumentTotals = Omit<LineTotals, 'transactions'>;

/** What every duplicate of the key is answered with. */
export interface SettlementResult {
  readonly document: { readonly id: string; readonly totals: Readonly<Record<string, DocumentTotals>> };
  readonly lines: number;
  readonly payouts: number;
  readonly hash: string;
}

type Sums = Record<keyof LineTotals, bigint>;

/**
 * Writes the settlement document from what the slices left, in slice order, after checking that it balances: per currency
 * net + carry-in − payout = closing, and exactly the sealed rows were settled. It walks no line. The document's id
 * derives from key and content, so that a close repeated after a failover gives the same one. Throws OnceperError
 * `settlement_unbalanced`, or `period_not_sealed` where somebody else closed the period.
 */
export async function close(tx: Tx, context: GrantedContext, slices: readonly unknown[]): Promise<SettlementResult> {
  const results = slices.map(parseSliceResult);
  const sums = addUp(results);
  await closePeriod(tx, context);
  const { sealedTotals } = await readPeriod(tx, context.period);
  checkBalance(context.key, sums);
  checkControlTotals(context.key, sums, sealedTotals);
  const hash = sha256(results.map((result) => result.hash).join('\n'));
  const { key, period, fence, ruleVersion } = context;
  const document = { id: documentId(key, hash), totals: documentTotals(sums) };
  const lines = results.reduce((count, result) => count + result.lines, 0);
  const payouts = results.reduce((count, result) => count + result.payouts, 0);
  await insertDocument(tx, { ...document, key, period, hash, lines, fence, ruleVersion });
  return { document, lines, payouts, hash };
}

function addUp(results: readonly SliceResult[]): ReadonlyMap<string, Sums> {
  const sums = new Map<string, Sums>();
  for (const { totals } of results) {
    for (const [currency, part] of Object.entries(totals)) {
      const before = sums.get(currency);
      const add = (name: keyof LineTotals) => (before?.[name] ?? 0n) + BigInt(part[name]);
      sums.set(currency, {
        transactions: add('transactions'),
        sales: add('sales'),
        refunds: add('refunds'),
        fees: add('fees'),
        net: add('net'),
        carryIn: add('carryIn'),
        assigned: add('assigned'),
        payout: add('payout'),
        closing: add('closing'),
      });
    }
  }
  return new Map([...sums].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function checkBalance(key: string, sums: ReadonlyMap<string, Sums>): void {
  for (const [currency, sum] of sums) {
    if (sum.sales - sum.refunds - sum.fees === sum.net && sum.net + sum.carryIn - sum.payout === sum.closing) continue;
    throw unbalanced(key, `the ${currency} totals of its slices do not add up`);
  }
}

/** Every sealed transaction and assigned posting was settled, and nothing else: against what the seal saw. */
function checkControlTotals(key: string, sums: ReadonlyMap<string, Sums>, stored: unknown): void {
  const sealed = parseControlTotals(stored);
  for (const currency of new Set([...sums.keys(), ...Object.keys(sealed)])) {
    const { transactions, amount, assigned } = sealed[currency] ?? { transactions: '0', amount: '0', assigned: '0' };
    const sum = sums.get(currency);
    const settled = sum === undefined ? 0n : sum.sales - sum.refunds;
    const count = sum?.transactions ?? 0n;
    const brought = sum?.assigned ?? 0n;
    if (count === BigInt(transactions) && settled === BigInt(amount) && brought === BigInt(assigned)) continue;
    throw unbalanced(
      key,
      `${currency}: sealed were ${transactions} transactions of ${amount}, settled ${count} of ${settled}; assigned postings ${assigned}, settled ${brought}`,
    );
  }
}

function unbalanced(key: string, reason: string): OnceperError {
  return new OnceperError({
    code: 'settlement_unbalanced',
    message: `${key} is not closed: ${reason}`,
    remedy: 'nothing was sent; look for a hand that changed rows of schema settlement after the seal',
    at: key,
  });
}

function documentTotals(sums: ReadonlyMap<string, Sums>): Record<string, DocumentTotals> {
  return Object.fromEntries(
    [...sums].map(([currency, sum]) => [
      currency,
      {
        sales: sum.sales.toString(),
        refunds: sum.refunds.toString(),
        fees: sum.fees.toString(),
        net: sum.net.toString(),
        carryIn: sum.carryIn.toString(),
        payout: sum.payout.toString(),
        closing: sum.closing.toString(),
        assigned: sum.assigned.toString(),
      },
    ]),
  );
}

async function closePeriod(tx: Tx, context: GrantedContext): Promise<void> {
  const { rowCount } = await tx.query(
    `update settlement.period set state = 'closed', closed_at = clock_timestamp()
      where period = $1 and state = 'sealed' and sealed_by_fence <= $2`,
    [context.period, context.fence],
  );
  if (rowCount === 1) return;
  throw new OnceperError({
    code: 'period_not_sealed',
    message: `period ${context.period} is not sealed by ${context.key}, so it can't be closed`,
    remedy: 'another holder of the key has closed it, or a hand changed settlement.period: read npx onceper why',
    at: context.key,
  });
}
