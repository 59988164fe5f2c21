import { z } from 'zod';
import { isCurrency } from '../../kernel/currency.ts';
import { OnceperError } from '../../kernel/error.ts';

/** The largest amount that a bigint column holds. */
const largestAmount = 2n ** 63n - 1n;

const minorUnitsText = z
  .string()
  .regex(/^(?:0|[1-9][0-9]*)$/, { error: 'is not a whole number of minor units, written as text', abort: true })
  .refine((text) => text.length < 20 && BigInt(text) <= largestAmount, 'is larger than the ledger can hold');

const currencyCode = z.string().refine(isCurrency, 'is not an ISO 4217 currency with minor units');

const parametersShape = z.strictObject({
  /** Per currency: a share of each sale in basis points (1/100 %), and a fixed part of each sale in minor units. */
  fees: z.record(currencyCode, z.strictObject({ basisPoints: z.int().min(0).max(10_000), fixed: minorUnitsText })),
  /** Per currency: the least that is paid out, in minor units; what is payable below it stays. Not named: any amount. */
  minimum: z.record(currencyCode, minorUnitsText).default({}),
});

/** What one currency costs and the least that is paid out in it, in minor units. */
interface CurrencyRule {
  readonly currency: string;
  readonly basisPoints: bigint;
  readonly fixed: bigint;
  readonly minimum: bigint;
}

/** The settlement job's part of a rule: a currency that is not listed here can't be settled. */
export interface SettlementParameters {
  readonly currencies: readonly CurrencyRule[];
}

/**
 * Parses the `parameters` of a settlement rule: `{"fees":{"GBP":{"basisPoints":150,"fixed":"20"}},"minimum":{"GBP":"100"}}`.
 * Throws OnceperError `malformed_rule` naming the field that is wrong.
 */
export function parseParameters(parameters: unknown): SettlementParameters {
  const parsed = parametersShape.safeParse(parameters);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw malformedRule(['parameters', ...(issue?.path ?? [])].join('.'), messageOf(issue));
  }
  const { fees, minimum } = parsed.data;
  for (const currency of Object.keys(minimum)) {
    if (!Object.hasOwn(fees, currency)) throw malformedRule(`parameters.minimum.${currency}`, 'has no fees beside it');
  }
  return {
    currencies: Object.entries(fees).map(([currency, { basisPoints, fixed }]) => ({
      currency,
      basisPoints: BigInt(basisPoints),
      fixed: BigInt(fixed),
      minimum: BigInt(minimum[currency] ?? '0'),
    })),
  };
}

/** The error of a record's key says only that it is invalid; the reason lies one level below. */
function messageOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue?.code === 'invalid_key') return issue.issues[0]?.message ?? issue.message;
  return issue?.message ?? 'is not the part of a settlement rule';
}

function malformedRule(field: string, reason: string): OnceperError {
  return new OnceperError({
    code: 'malformed_rule',
    message: `${field}: ${reason}`,
    remedy: 'compare it with rules/settlement.json',
    at: field,
  });
}
