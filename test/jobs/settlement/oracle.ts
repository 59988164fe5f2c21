import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Bench } from './settling.ts';

/** What a merchant's month must come to, or came to, in minor units of one currency. */
export interface MerchantMonth {
  readonly merchant: string;
  readonly month: string;
  readonly currency: string;
  readonly sales: bigint;
  readonly refunds: bigint;
  readonly net: bigint;
}

/** The merchant-months that the documents of these months have, but for lines that only carry a balance. */
export async function settledMonths(bench: Bench, months: readonly string[]): Promise<readonly MerchantMonth[]> {
  const { rows } = await bench.db.query<MerchantMonth>(
    `select merchant, period as month, currency, sales, refunds, sales - refunds as net
       from settlement.line where period = any ($1) and transactions > 0`,
    [months],
  );
  return rows;
}

/** Merchant-months as texts, sorted: two sets of them are equal when these are. */
export function asTexts(months: readonly MerchantMonth[]): readonly string[] {
  return months
    .map(
      ({ merchant, month, currency, sales, refunds, net }) =>
        `${month} ${merchant} ${currency} ${sales} ${refunds} ${net}`,
    )
    .toSorted();
}

/** Σ payouts, Σ net and Σ closings of one period, over the documents of all periods, per currency. */
export async function carried(
  bench: Bench,
  last: string,
): Promise<readonly { currency: string; net: bigint; payouts: bigint; closings: bigint }[]> {
  const { rows } = await bench.db.query<{ currency: string; net: bigint; payouts: bigint; closings: bigint }>(
    `select currency, sum(net)::int8 as net, sum(payout)::int8 as payouts,
            coalesce(sum(closing) filter (where period = $1), 0)::int8 as closings
       from settlement.line group by currency order by currency`,
    [last],
  );
  return rows;
}

/** The rows of a small gz CSV without quotes inside, by its header. */
export function readCsvGz(path: string): readonly Record<string, string>[] {
  const [header = '', ...lines] = gunzipSync(readFileSync(path)).toString('utf8').trimEnd().split(/\r?\n/);
  const columns = header.split(',');
  return lines.map((line) => {
    const fields = line.split(',');
    return Object.fromEntries(columns.map((column, n) => [column, fields[n] ?? '']));
  });
}

/** `12.3` as 1230n: by moving the point in the text, not by the kernel's parser that is under test. */
export function pence(text: string): bigint {
  const [whole = '', decimals = ''] = text.split('.');
  const sign = whole.startsWith('-') ? -1n : 1n;
  return sign * (BigInt(whole.replace('-', '')) * 100n + BigInt(decimals.padEnd(2, '0')));
}
