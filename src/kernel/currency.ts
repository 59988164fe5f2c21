import currencies from 'currency-codes';
import { OnceperError } from './error.ts';

/**
 * Codes that ISO 4217 lists with minor unit "N.A.": metals, bond market units, testing, no currency. The package gives
 * them 0 digits, as if an ounce of gold could be paid out like a yen.
 */
const withoutMinorUnits = new Set('XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XTS XUA XXX'.split(' '));

const digitsOf = new Map<string, number>(
  currencies.data.filter((entry) => !withoutMinorUnits.has(entry.code)).map((entry) => [entry.code, entry.digits]),
);

/** Whether the code is a currency of ISO 4217 that has minor units; lower case is not one. */
export function isCurrency(code: string): boolean {
  return digitsOf.has(code);
}

/**
 * How many decimal digits the currency has by the ISO 4217 list: JPY 0, EUR 2, KWD 3, CLF 4. Never taken from Intl,
 * whose digits follow cash usage (ISK, HUF, …) and the process's data.
 *
 * @throws OnceperError `unknown_currency`, with a hint when only the letters' case is wrong.
 */
export function minorUnits(code: string): number {
  const digits = digitsOf.get(code);
  if (digits !== undefined) return digits;
  const upper = code.toUpperCase();
  throw new OnceperError({
    code: 'unknown_currency',
    message: `'${code}' is not a currency that amounts can be kept in`,
    remedy: digitsOf.has(upper)
      ? `write ${upper}: ISO 4217 codes are three capital letters`
      : 'use an ISO 4217 code that has minor units, for example GBP',
    at: code,
  });
}
