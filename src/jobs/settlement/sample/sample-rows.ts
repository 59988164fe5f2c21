import { Temporal } from 'temporal-polyfill';
import { Draw } from './draw.ts';

/** What a generated sample consists of. The same options always give the same rows in the same order. */
export interface SampleOptions {
  /** Months as `2026-09`, ascending; the last one is the month in which the negative merchant is negative. */
  readonly months: readonly string[];
  /** At least three: a negative one, one whose month is exactly zero, and ordinary ones. */
  readonly merchants: number;
  readonly seed: number;
  /** The most transactions of an ordinary merchant in a month; 8 where not stated. */
  readonly mostTransactions?: number;
}

/** A generated transaction; `minor` is the signed amount in minor units, a refund below zero. */
export interface SampleRow {
  readonly id: string;
  readonly merchant: string;
  readonly name: string;
  readonly month: string;
  readonly date: string;
  readonly currency: string;
  readonly minor: bigint;
}

/** Three currencies with 0, 2 and 3 decimals, and a usual range of a sale in minor units. */
const currencies = [
  { code: 'GBP', least: 95, most: 25_000 },
  { code: 'JPY', least: 120, most: 40_000 },
  { code: 'KWD', least: 250, most: 90_000 },
] as const;

const trades = [
  'Harbour Coffee',
  'Lantern Books',
  'Mill & Sons',
  'North Gate Cycles',
  'Quay, Deli',
  'Old "Forge" Tools',
];

/** The months of a sample: `count` of them, the last one being `last`. */
export function sampleMonths(last: string, count: number): readonly string[] {
  const end = Temporal.PlainYearMonth.from(last);
  return Array.from({ length: count }, (_, index) => end.subtract({ months: count - 1 - index }).toString());
}

/** The transactions of a sample, month by month and merchant by merchant; one at a time, so ten million fit in no memory. */
export function* sampleRows(options: SampleOptions): Generator<SampleRow> {
  for (const [index, month] of options.months.entries()) {
    const monthsLeft = options.months.length - 1 - index;
    for (let merchant = 0; merchant < options.merchants; merchant += 1) {
      yield* merchantMonth(options, { month, monthsLeft, merchant });
    }
  }
}

interface MerchantMonth {
  readonly month: string;
  readonly monthsLeft: number;
  readonly merchant: number;
}

function* merchantMonth(options: SampleOptions, of: MerchantMonth): Generator<SampleRow> {
  const [year = 0, month = 0] = of.month.split('-').map(Number);
  const draw = new Draw(options.seed, year, month, of.merchant);
  const amounts = amountsOf(options, of, draw);
  const merchant = `m-${String(of.merchant + 1).padStart(7, '0')}`;
  const days = Temporal.PlainYearMonth.from(of.month).daysInMonth;
  for (const [index, { currency, minor }] of amounts.entries()) {
    yield {
      id: `${options.seed}-${of.month}-${merchant}-${index + 1}`,
      merchant,
      name: `${trades[of.merchant % trades.length]} ${of.merchant + 1}`,
      month: of.month,
      date: `${of.month}-${String(draw.between(1, days)).padStart(2, '0')}`,
      currency,
      minor,
    };
  }
}

interface Amount {
  readonly currency: string;
  readonly minor: bigint;
}

function amountsOf(options: SampleOptions, of: MerchantMonth, draw: Draw): readonly Amount[] {
  if (of.merchant === 0) return negativeMonth(of.monthsLeft % 2 === 0);
  if (of.merchant === 1) return zeroMonth;
  if (of.merchant > 2 && draw.percent(3)) return [];
  const amounts: Amount[] = [];
  const count = draw.between(1, options.mostTransactions ?? 8);
  for (let n = 0; n < count; n += 1) {
    const hasSecondCurrency = of.merchant % 10 === 5 && draw.percent(40);
    const { code, least, most } = currencyOf(of.merchant + (hasSecondCurrency ? 1 : 0));
    const size = draw.between(least, most);
    amounts.push({ currency: code, minor: BigInt(draw.percent(7) ? -size : size) });
  }
  return amounts;
}

/** Refunds above sales in the last month and every second before it; between them the balance recovers in part. */
function negativeMonth(isNegative: boolean): readonly Amount[] {
  const sale = { currency: 'GBP', minor: isNegative ? 1_500n : 4_000n };
  return isNegative ? [sale, { currency: 'GBP', minor: -4_750n }] : [sale];
}

/** What is sold is returned, and too little for a fee: 1.8 % of 20 yen round to nothing. */
const zeroMonth: readonly Amount[] = [
  { currency: 'JPY', minor: 20n },
  { currency: 'JPY', minor: -20n },
];

function currencyOf(index: number): (typeof currencies)[number] {
  return currencies[index % currencies.length] ?? currencies[0];
}
