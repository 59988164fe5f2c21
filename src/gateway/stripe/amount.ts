import { isCurrency, minorUnits } from '../../kernel/currency.ts';

/** How many decimals Stripe's integers have where ISO 4217 counts otherwise, or where two would be a guess. */
const DECIMALS = new Map<string, number>([
  ...'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' ').map((code) => [code, 0] as const),
  // Without decimals in the list and in the shops, yet two in Stripe's API, for its older clients' sake.
  ...'ISK UGX'.split(' ').map((code) => [code, 2] as const),
  ...'BHD JOD KWD OMR TND'.split(' ').map((code) => [code, 3] as const),
]);

/** Stripe takes thousandths of a dinar or rial in tens only. */
const TENS = new Set('BHD JOD KWD OMR TND'.split(' '));

/**
 * Stripe's integer for an amount of minor units by ISO 4217, or null where it has none: a fraction it does not keep, a
 * currency whose decimals it does not state, or more than a double holds exactly. Never rounded.
 */
export function stripeAmount(amount: string, currency: string): number | null {
  const scale = scaleOf(currency);
  if (scale === null) return null;
  const minor = BigInt(amount);
  if (minor % scale.divisor !== 0n) return null;
  const stated = (minor * scale.factor) / scale.divisor;
  if (TENS.has(currency) && stated % 10n !== 0n) return null;
  if (stated > BigInt(Number.MAX_SAFE_INTEGER)) return null;
  return Number(stated);
}

/** Minor units by ISO 4217 of Stripe's integer, as decimal text, or null where it states no amount that we can keep. */
export function minorAmount(stated: number, currency: string): string | null {
  const scale = scaleOf(currency);
  if (scale === null || !Number.isSafeInteger(stated) || stated < 0) return null;
  const whole = BigInt(stated) * scale.divisor;
  return whole % scale.factor === 0n ? String(whole / scale.factor) : null;
}

function scaleOf(currency: string): { readonly factor: bigint; readonly divisor: bigint } | null {
  if (!isCurrency(currency)) return null;
  const ours = minorUnits(currency);
  const theirs = DECIMALS.get(currency) ?? (ours === 2 ? 2 : null);
  if (theirs === null) return null;
  return { factor: 10n ** BigInt(Math.max(0, theirs - ours)), divisor: 10n ** BigInt(Math.max(0, ours - theirs)) };
}
