import { type SampleOptions, sampleRows } from './sample-rows.ts';

/** What a merchant's month of a currency must come to, before fees, in minor units. */
export interface OracleEntry {
  readonly merchant: string;
  readonly month: string;
  readonly currency: string;
  readonly transactions: number;
  readonly sales: bigint;
  readonly refunds: bigint;
  readonly net: bigint;
}

/**
 * The sums that a settlement of the sample must reproduce, added up from the generated rows in plain bigint: neither the file
 * nor the database nor any code of the settlement takes part. In the order in which the rows first name them.
 */
export function sampleOracle(options: SampleOptions): readonly OracleEntry[] {
  const entries = new Map<string, OracleEntry>();
  for (const { merchant, month, currency, minor } of sampleRows(options)) {
    const name = `${merchant} ${month} ${currency}`;
    const before = entries.get(name);
    const sales = (before?.sales ?? 0n) + (minor > 0n ? minor : 0n);
    const refunds = (before?.refunds ?? 0n) + (minor < 0n ? -minor : 0n);
    const transactions = (before?.transactions ?? 0) + 1;
    entries.set(name, { merchant, month, currency, transactions, sales, refunds, net: sales - refunds });
  }
  return [...entries.values()];
}
