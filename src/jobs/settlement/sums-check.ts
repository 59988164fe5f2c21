import type { Tx } from '../../kernel/sql.ts';
import type { JobContext } from '../job.ts';
import { EVERYBODY, LINE_UNBOUNDED, lineValues } from './line.ts';
import { parseParameters } from './parameters.ts';
import type { PeriodRow } from './period-row.ts';

/** What a column of amounts holds; a sum beyond it fails the slice, when nothing can be corrected any more. */
const LARGEST = 2n ** 63n - 1n;

/** A file of wrong amounts may be wrong for every merchant: some show the kind of mistake, a count the size. */
const MERCHANTS_NAMED = 5;

/** What a period comes to at most, whoever it is spread over: how many rows, and magnitudes added up, in minor units. */
export interface Volume {
  readonly transactions: bigint;
  readonly moved: bigint;
  readonly carried: bigint;
}

/**
 * Whether a sum of some merchant might leave int8. Every sum of a line (sales, refunds, fees, net, what is carried in, what is
 * payable) is at most what all rows move, what they cost and what is carried in together, and a fee is at most its sale and the
 * fixed part. Three additions, so that an honest month, which is a billion times smaller, pays for no scan.
 */
export function mayExceed({ transactions, moved, carried }: Volume, context: JobContext): boolean {
  const fixed = parseParameters(context.rule.parameters).currencies.map((rule) => rule.fixed);
  const dearest = fixed.reduce((most, part) => (part > most ? part : most), 0n);
  return 2n * moved + transactions * dearest + carried > LARGEST;
}

/**
 * Says which merchants' sums are larger than a line can hold, by the lines that would be written; null where there is none. It
 * reads the whole period: asked only where `mayExceed` says so.
 */
export async function sumsTooLarge(
  tx: Tx,
  context: JobContext,
  period: PeriodRow,
  moved: readonly string[],
): Promise<string | null> {
  const { rows } = await tx.query<{ merchant: string; currency: string; part: string; total: number }>(
    `${LINE_UNBOUNDED}
     select merchant, currency, part, (count(*) over ())::int4 as total
       from line
      cross join lateral (
            select part
              from (values (1, 'sales', sales), (2, 'refunds', refunds), (3, 'fees', fees), (4, 'net amount', net),
                           (5, 'balance carried in', carry_in), (6, 'assigned postings', assigned),
                           (7, 'payable amount', net + carry_in)) as sum (place, part, amount)
             where amount not between -9223372036854775808 and 9223372036854775807
             order by place
             limit 1) as beyond
      order by merchant, currency
      limit ${MERCHANTS_NAMED}`,
    lineValues(context, period, moved, EVERYBODY),
  );
  if (rows.length === 0) return null;
  const named = rows.map(({ merchant, currency, part }) => `the ${part} of ${merchant} in ${currency}`).join(', ');
  const others = (rows[0]?.total ?? 0) - rows.length;
  return `${context.period} has sums beyond what the ledger can hold: ${named}${others > 0 ? ` and ${others} more` : ''}`;
}

/**
 * What a person can do, for both places that find it. Sales, refunds and fees only grow by more rows; the import refuses a file that
 * takes sales or refunds there, so that only rows which it did not store can have done it.
 */
export const TOO_LARGE_REMEDY =
  'import a correcting row of that merchant and currency, with an id of its own, and run the period again; sales, refunds or fees that are too large by themselves fall only when a hand moves rows to a later period';
