import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Draw } from '../../../src/jobs/settlement/sample/draw.ts';

/** What is settled while the faults fall. */
export interface Load {
  readonly months: readonly string[];
  /** The transactions of all months but the last, and those of the last. */
  readonly files: readonly string[];
  readonly ruleFile: string;
  readonly rule: Readonly<Record<string, unknown>>;
}

const HEADER = 'id,merchant,name,date,amount,currency';

const CURRENCIES = [
  { code: 'GBP', decimals: 2, least: 95, most: 25_000 },
  { code: 'JPY', decimals: 0, least: 120, most: 40_000 },
] as const;

/**
 * Writes the files of the last months that have ended before `today`, and the rule: refunds, merchants below zero whose
 * balance is carried on, amounts below the least payout, a second currency for every third merchant.
 */
export function writeLoad(
  root: string,
  folder: string,
  options: {
    readonly seed: number;
    readonly months: number;
    readonly merchants: number;
    readonly subjectsPerSlice: number;
    readonly today: Date;
  },
): Load {
  const months = monthsBefore(options.today, options.months);
  const last = months.length - 1;
  const rowsOf = (from: number, to: number) =>
    months.flatMap((month, at) => (at < from || at >= to ? [] : rowsOfMonth({ ...options, month, at })));
  const write = (name: string, rows: readonly string[]) => {
    const file = join(folder, name);
    writeFileSync(file, `${[HEADER, ...rows].join('\n')}\n`);
    return file;
  };
  const files = [write('transactions.csv', rowsOf(0, last)), write('transactions-last.csv', rowsOf(last, last + 1))];
  const body = JSON.parse(readFileSync(join(root, 'rules/settlement.json'), 'utf8')) as Record<string, unknown>;
  const rule = {
    ...body,
    first: months[0],
    leaseSeconds: 5,
    subjectsPerSlice: options.subjectsPerSlice,
    slicesInFlight: 4,
    budget: 40,
  };
  const ruleFile = join(folder, 'rule.json');
  writeFileSync(ruleFile, JSON.stringify(rule));
  return { months, files, ruleFile, rule };
}

/** The rule's zone, which has had no other offset since 1991. */
const SHANGHAI_AHEAD_MS = 8 * 3_600_000;

function monthsBefore(today: Date, count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => {
    const here = new Date(today.getTime() + SHANGHAI_AHEAD_MS);
    const first = new Date(Date.UTC(here.getUTCFullYear(), here.getUTCMonth() - count + at, 1));
    return first.toISOString().slice(0, 7);
  });
}

function rowsOfMonth(of: {
  readonly seed: number;
  readonly month: string;
  readonly at: number;
  readonly merchants: number;
}) {
  const lines: string[] = [];
  for (let merchant = 1; merchant <= of.merchants; merchant += 1) {
    const draw = new Draw(of.seed, of.at, merchant);
    const id = `m-${String(merchant).padStart(4, '0')}`;
    const own = merchant % 3 === 0 ? CURRENCIES : [CURRENCIES[merchant % 2 === 0 ? 1 : 0]];
    for (const { code, decimals, least, most } of own) {
      const count = draw.between(0, 4);
      for (let n = 1; n <= count; n += 1) {
        // A few sales are so small that they stay below the least payout, and some refunds exceed all sales.
        const size = draw.percent(8) ? draw.between(5, 60) : draw.between(least, most);
        const minor = draw.percent(merchant % 11 === 0 ? 60 : 12) ? -size : size;
        const day = String(draw.between(1, 28)).padStart(2, '0');
        const row = `t-${of.month}-${merchant}-${code}-${n}`;
        lines.push(`${row},${id},"Shop ""${merchant}"", Ltd",${of.month}-${day},${decimal(minor, decimals)},${code}`);
      }
    }
  }
  return lines;
}

function decimal(minor: number, decimals: number): string {
  const digits = String(Math.abs(minor)).padStart(decimals + 1, '0');
  const text = decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
  return minor < 0 ? `-${text}` : text;
}
