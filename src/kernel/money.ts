import { minorUnits } from './currency.ts';
import { OnceperError } from './error.ts';

const amountForm = /^(-?)(\d+)(?:\.(\d+))?$/;

/** The largest amount of a bigint column; the ledger would refuse more in the middle of a settlement. */
const largestAmount = 2n ** 63n - 1n;

/** 100 % in basis points. */
const wholeInBasisPoints = 10_000n;

/**
 * Decimal text as signed minor units of the currency, exactly: `19.99` GBP is 1999n, `1.234` KWD 1234n. Decimals beyond
 * the currency's are accepted while they are zero (`80.00` JPY is 80n) and never rounded away.
 *
 * @throws OnceperError `malformed_amount` for anything but digits with an optional leading '-' and one '.', or for more
 * than a bigint column holds; `too_many_decimals`; `unknown_currency`.
 */
export function parseAmount(text: string, currency: string): bigint {
  const digits = minorUnits(currency);
  const [, sign, whole, decimals = ''] = amountForm.exec(text) ?? [];
  if (sign === undefined || whole === undefined) {
    throw malformedAmount(text, currency, 'is not an amount');
  }
  const kept = decimals.slice(0, digits).padEnd(digits, '0');
  if (/[1-9]/.test(decimals.slice(digits))) {
    throw new OnceperError({
      code: 'too_many_decimals',
      message: `'${text}' has more decimals than ${currency} has (${digits})`,
      remedy: `round it at its source: ${currency} amounts have ${digits} decimals`,
      at: text,
    });
  }
  const magnitude = BigInt(whole + kept);
  if (magnitude > largestAmount) throw malformedAmount(text, currency, 'is larger than the ledger can hold');
  return sign === '-' ? -magnitude : magnitude;
}

/**
 * Minor units as decimal text with exactly the currency's decimals: 1999n GBP is `19.99`, -5n GBP `-0.05`, 80n JPY `80`.
 * parseAmount gives the minor units back.
 *
 * @throws OnceperError `unknown_currency`.
 */
export function formatAmount(minor: bigint, currency: string): string {
  const digits = minorUnits(currency);
  const sign = minor < 0n ? '-' : '';
  const text = (minor < 0n ? -minor : minor).toString().padStart(digits + 1, '0');
  const whole = text.slice(0, text.length - digits);
  return digits === 0 ? `${sign}${whole}` : `${sign}${whole}.${text.slice(-digits)}`;
}

/**
 * The fee of one transaction in minor units: `basisPoints` (1/100 %) of the amount plus a fixed part. This is the one
 * place where money is rounded: per transaction, half to even, so that a merchant's fees are the sum of the fees of
 * the lines, whatever the lines are grouped by.
 */
export function fee(of: { readonly amount: bigint; readonly basisPoints: bigint; readonly fixed: bigint }): bigint {
  return divideHalfEven(of.amount * of.basisPoints, wholeInBasisPoints) + of.fixed;
}

/** n / d to the nearest integer, a tie to the even one: 5/2 is 2, 7/2 is 4, -5/2 is -2. A RangeError when d is zero. */
export function divideHalfEven(n: bigint, d: bigint): bigint {
  const quotient = n / d;
  const remainder = n % d;
  const twice = magnitudeOf(remainder) * 2n;
  const divisor = magnitudeOf(d);
  const isNearestAway = twice > divisor || (twice === divisor && quotient % 2n !== 0n);
  if (!isNearestAway) return quotient;
  return n < 0n === d < 0n ? quotient + 1n : quotient - 1n;
}

/** The sum of amounts of one currency; 0n of none. */
export function sum(amounts: Iterable<bigint>): bigint {
  let total = 0n;
  for (const amount of amounts) total += amount;
  return total;
}

function magnitudeOf(value: bigint): bigint {
  return value < 0n ? -value : value;
}

function malformedAmount(text: string, currency: string, reason: string): OnceperError {
  return new OnceperError({
    code: 'malformed_amount',
    message: `'${text}' ${currency} ${reason}`,
    remedy: "write digits with '.' before the decimals and no grouping, for example 1234.56 or -0.50",
    at: text,
  });
}
