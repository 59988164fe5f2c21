import { z } from 'zod';
import { OnceperError } from '../../kernel/error.ts';

const wholeNumber = z.string().regex(/^-?[0-9]+$/);

/** Totals of one currency, minor units as text. */
const lineTotalsShape = z.strictObject({
  transactions: wholeNumber,
  sales: wholeNumber,
  refunds: wholeNumber,
  fees: wholeNumber,
  net: wholeNumber,
  carryIn: wholeNumber,
  /** The part of carryIn that assigned postings brought. A slice of a release before them had none. */
  assigned: wholeNumber.default('0'),
  payout: wholeNumber,
  closing: wholeNumber,
});

const sliceResultShape = z.strictObject({
  lines: z.int(),
  payouts: z.int(),
  /** SHA-256 over the slice's lines in (merchant, currency) order, hex. */
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  totals: z.record(z.string(), lineTotalsShape),
});

export type LineTotals = z.infer<typeof lineTotalsShape>;

/** What a slice leaves for close: small whatever the slice's size, so that close never walks the lines. */
export type SliceResult = z.infer<typeof sliceResultShape>;

/** Reads a stored result back. Throws OnceperError `slice_result_unreadable` where it is none, as another release may write. */
export function parseSliceResult(stored: unknown): SliceResult {
  const parsed = sliceResultShape.safeParse(stored);
  if (parsed.success) return parsed.data;
  throw new OnceperError({
    code: 'slice_result_unreadable',
    message: `a slice's stored result has another shape than this release reads: ${parsed.error.issues[0]?.message}`,
    remedy: 'close the period with the release that performed its slices',
    cause: parsed.error,
  });
}

/**
 * Counts, totals per currency and the hash of the slice's lines, a select over `line` (line.ts). A line without assigned
 * postings is hashed without them: as it was before there were any.
 */
export const SLICE_RESULT = `
  select count(*)::int4 as lines, count(*) filter (where payout > 0)::int4 as payouts,
         encode(sha256(convert_to(coalesce(string_agg(
           concat_ws('|', merchant, currency, transactions, sales, refunds, fees, net, carry_in, payout, closing, nullif(assigned, 0)),
           e'\\n' order by merchant, currency), ''), 'UTF8')), 'hex') as hash,
         (select coalesce(jsonb_object_agg(t.currency, to_jsonb(t) - 'currency'), '{}')
            from (select currency, sum(transactions)::text as transactions, sum(sales)::text as sales,
                         sum(refunds)::text as refunds, sum(fees)::text as fees, sum(net)::text as net,
                         sum(carry_in)::text as "carryIn", sum(assigned)::text as assigned, sum(payout)::text as payout,
                         sum(closing)::text as closing
                    from line group by currency) t) as totals
    from line`;
