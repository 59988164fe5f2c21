import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseRule } from '../../../src/jobs/rule.ts';
import { derivedSubjectId } from '../../../src/kernel/subject.ts';
import { asTexts, carried, type MerchantMonth, pence, readCsvGz, settledMonths } from './oracle.ts';
import { Bench, type Effect } from './settling.ts';

const data = join(import.meta.dirname, '../../../../shared/data/birmingham-cards');
const transactions = join(data, 'transactions.csv.gz');
const source = 'birmingham-cards';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const months = [
  '2016-12',
  ...Array.from({ length: 12 }, (_, n) => `2017-${String(n + 1).padStart(2, '0')}`),
  '2018-01',
];
const rule = parseRule(JSON.parse(readFileSync('rules/birmingham.json', 'utf8')), 'rules/birmingham.json');

const bench = Bench.forThisFile();

async function settleAll(): Promise<readonly Effect[]> {
  const effects: Effect[] = [];
  for (const month of months) effects.push(...(await bench.settle(rule, month)).effects);
  return effects;
}

/** The same file with its rows in another order, deterministically. */
function shuffled(): Buffer {
  const [header = '', ...lines] = gunzipSync(readFileSync(transactions)).toString('utf8').trimEnd().split('\r\n');
  const keyed = lines.map((line) => [sha256(line), line] as const).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return gzipSync(`${[header, ...keyed.map(([, line]) => line)].join('\r\n')}\r\n`);
}

describe.skipIf(!existsSync(transactions))('the card transactions of Birmingham (../shared/data)', () => {
  let effects: readonly Effect[] = [];

  beforeAll(async () => {
    expect(await bench.importPath(transactions, { source, rule })).toMatchObject({ rows: 54_229, added: 54_229 });
    effects = await settleAll();
  }, 120_000);

  it('settle to the oracle in every merchant-month, to the penny', async () => {
    const oracle = readCsvGz(join(data, 'oracle_merchant_month.csv.gz'))
      .filter(({ month }) => months.includes(month ?? ''))
      .map(
        (row): MerchantMonth => ({
          merchant: derivedSubjectId(source, row['merchant'] ?? '', sha256),
          month: row['month'] ?? '',
          currency: 'GBP',
          sales: pence(row['sale_amount'] ?? ''),
          refunds: pence((row['refund_amount'] ?? '').replace('-', '')),
          net: pence(row['net_gbp'] ?? ''),
        }),
      );
    expect(oracle.length).toBeGreaterThan(13_000);
    expect(asTexts(await settledMonths(bench, months))).toEqual(asTexts(oracle));
  });

  it('carry every balance forward once: payouts and last closings are the sum of the file', async () => {
    const inFile = readCsvGz(transactions)
      .filter((row) => months.includes((row['TRANS DATE'] ?? '').slice(0, 7)))
      .reduce((sum, row) => sum + pence(row['BILLING GROSS AMT'] ?? ''), 0n);
    const [gbp] = await carried(bench, '2018-01');
    expect(gbp?.net).toBe(inFile);
    expect((gbp?.payouts ?? 0n) + (gbp?.closings ?? 0n)).toBe(inFile);
    expect(await bench.gaps()).toEqual({ GBP: 0n });
  });

  it('add nothing when they are imported again, renamed and shuffled', async () => {
    expect(await bench.importText(shuffled(), { source, rule }, 'renamed.csv')).toMatchObject({
      kind: 'imported',
      rows: 54_229,
      added: 0,
      known: 54_229,
    });
  });

  it('are held when a month of them comes again under another name', async () => {
    const [header = '', ...lines] = gunzipSync(readFileSync(transactions)).toString('utf8').trimEnd().split('\r\n');
    const column = header.split(',').indexOf('FILE');
    const month = lines.filter((line) => line.includes('2017-05-') && !line.includes('"'));
    const renamed = month.map((line) =>
      line
        .split(',')
        .with(column, `june-${line.split(',')[column]}`)
        .join(','),
    );
    const file = [header, ...renamed].join('\r\n');
    const imported = await bench.importText(`${file}\r\n`, { source, rule }, 'june.csv');
    if (imported.kind !== 'held') throw new Error(`the file is ${imported.kind}`);
    expect(imported.held).toMatchObject({
      repeats: month.length,
      of: month.length,
      from: [{ file: transactions, rows: month.length }],
    });
  });

  it('give the same effect numbers and bodies from another order in an empty database', async () => {
    await bench.empty();
    await bench.importText(shuffled(), { source, rule }, 'shuffled.csv');
    expect(await settleAll()).toEqual(effects);
  }, 120_000);
});
