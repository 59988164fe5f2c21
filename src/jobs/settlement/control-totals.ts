import { z } from 'zod';

const wholeNumber = z.string().regex(/^-?[0-9]+$/);

/**
 * Control totals of a sealed period, per currency: how many transactions it has and what they add up to, and what its assigned
 * postings do, in minor units. The seal takes them from the rows; close compares them with what the slices settled.
 */
const controlTotalsShape = z.record(
  z.string(),
  // A period that was sealed before there were assigned postings has none.
  z.strictObject({ transactions: wholeNumber, amount: wholeNumber, assigned: wholeNumber.default('0') }),
);

export type ControlTotals = z.infer<typeof controlTotalsShape>;

/** Reads control totals as the database stores them; throws ZodError on any other shape. */
export function parseControlTotals(stored: unknown): ControlTotals {
  return controlTotalsShape.parse(stored);
}
