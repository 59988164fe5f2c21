import { readFileSync } from 'node:fs';

/** What a merchant's month of one currency comes to, in minor units. */
export interface ExpectedLine {
  readonly month: string;
  readonly merchant: string;
  readonly currency: string;
  readonly sales: bigint;
  readonly refunds: bigint;
  readonly fees: bigint;
  readonly carryIn: bigint;
  readonly payout: bigint;
  readonly closing: bigint;
}

/** What people added to a month, approved: a release of money on hold, or an adjustment. */
export interface Addition {
  readonly month: string;
  readonly merchant: string;
  readonly currency: string;
  readonly amount: bigint;
}

/** The fees and least payouts of the rule's file, as it is written there. */
interface Prices {
  readonly first: string;
  readonly parameters: {
    readonly fees: Readonly<Record<string, { readonly basisPoints: number; readonly fixed: string }>>;
    readonly minimum: Readonly<Record<string, string>>;
  };
}

const DECIMALS: Readonly<Record<string, number>> = { GBP: 2, JPY: 0 };

/** The fields of a line of CSV; a field in quotes may hold commas, and quotes twice. */
function fieldsOf(line: string): readonly string[] {
  return [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)]
    .map(([, field = '']) => (field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field))
    .slice(0, 6);
}

function minorOf(text: string, currency: string): bigint {
  const decimals = DECIMALS[currency];
  if (decimals === undefined) throw new Error(`the checker knows no decimals of ${currency}`);
  const [whole = '', part = ''] = text.replace('-', '').split('.');
  if (part.length !== decimals) throw new Error(`${text} ${currency} has not ${decimals} decimals`);
  const size = BigInt(`${whole}${part}`);
  return text.startsWith('-') ? -size : size;
}

/** Basis points of a sale, a half to the even neighbour, and the fixed part. */
function feeOf(amount: bigint, basisPoints: bigint, fixed: bigint): bigint {
  const product = amount * basisPoints;
  const [down, rest] = [product / 10_000n, product % 10_000n];
  const up = rest > 5_000n || (rest === 5_000n && down % 2n === 1n) ? 1n : 0n;
  return down + up + fixed;
}

interface Sums {
  sales: bigint;
  refunds: bigint;
  fees: bigint;
}

/** The sums of every month, merchant and currency that the files name. */
function sumsOf(files: readonly string[], prices: Prices): ReadonlyMap<string, Sums> {
  const sums = new Map<string, Sums>();
  for (const file of files) {
    for (const line of readFileSync(file, 'utf8').trimEnd().split('\n').slice(1)) {
      const [, merchant = '', , date = '', text = '', currency = ''] = fieldsOf(line);
      const place = `${date.slice(0, 7)} ${merchant} ${currency}`;
      const sum = sums.get(place) ?? { sales: 0n, refunds: 0n, fees: 0n };
      const amount = minorOf(text, currency);
      const fees = prices.parameters.fees[currency];
      if (fees === undefined) throw new Error(`the rule has no fees of ${currency}`);
      if (amount > 0n) sum.fees += feeOf(amount, BigInt(fees.basisPoints), BigInt(fees.fixed));
      if (amount > 0n) sum.sales += amount;
      else sum.refunds -= amount;
      sums.set(place, sum);
    }
  }
  return sums;
}

/** The months from the rule's first to the last that the files name, by counting. */
export function monthsOf(files: readonly string[], ruleFile: string): readonly string[] {
  const prices = JSON.parse(readFileSync(ruleFile, 'utf8')) as Prices;
  const last =
    [...sumsOf(files, prices).keys()]
      .map((place) => place.slice(0, 7))
      .toSorted()
      .at(-1) ?? '';
  const months: string[] = [];
  let [year = 0, month = 0] = prices.first.split('-').map(Number);
  while (months.at(-1) !== last) {
    months.push(`${year}-${String(month).padStart(2, '0')}`);
    [year, month] = month === 12 ? [year + 1, 1] : [year, month + 1];
    if (months.length > 600) throw new Error('the files name no month after the first');
  }
  return months;
}

/** Every line that must be in the ledger: by the files, the rule and what people added, and by nothing of the product. */
export function expectedLines(
  files: readonly string[],
  ruleFile: string,
  additions: readonly Addition[],
): readonly ExpectedLine[] {
  const prices = JSON.parse(readFileSync(ruleFile, 'utf8')) as Prices;
  const sums = sumsOf(files, prices);
  const lines: ExpectedLine[] = [];
  let carried = new Map<string, bigint>();
  for (const month of monthsOf(files, ruleFile)) {
    const brought = new Map(carried);
    for (const { merchant, currency, amount } of additions.filter((addition) => addition.month === month)) {
      const who = `${merchant} ${currency}`;
      brought.set(who, (brought.get(who) ?? 0n) + amount);
    }
    const moved = [...sums.keys()].filter((place) => place.startsWith(month)).map((place) => place.slice(8));
    carried = new Map();
    for (const who of new Set([...moved, ...brought.keys()])) {
      const [merchant = '', currency = ''] = who.split(' ');
      const { sales, refunds, fees } = sums.get(`${month} ${who}`) ?? { sales: 0n, refunds: 0n, fees: 0n };
      const carryIn = brought.get(who) ?? 0n;
      const payable = sales - refunds - fees + carryIn;
      const least = BigInt(prices.parameters.minimum[currency] ?? '0');
      const payout = payable > 0n && payable >= least ? payable : 0n;
      const closing = payable - payout;
      if (closing !== 0n) carried.set(who, closing);
      lines.push({ month, merchant, currency, sales, refunds, fees, carryIn, payout, closing });
    }
  }
  return lines;
}
