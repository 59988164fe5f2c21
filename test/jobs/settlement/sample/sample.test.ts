import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseRule } from '../../../../src/jobs/rule.ts';
import { sampleOracle } from '../../../../src/jobs/settlement/sample/sample-oracle.ts';
import { type SampleOptions, sampleMonths, sampleRows } from '../../../../src/jobs/settlement/sample/sample-rows.ts';
import { writeSample } from '../../../../src/jobs/settlement/sample/write-sample.ts';
import { asTexts, carried, settledMonths } from '../oracle.ts';
import { Bench, feesOf, ruleWith } from '../settling.ts';

const bench = Bench.forThisFile();
const months = sampleMonths('2026-10', 12);
const options: SampleOptions = { months, merchants: 200, seed: 20_261_001 };
const rule = ruleWith({ zone: 'Asia/Shanghai', first: '2025-11', parameters: { fees: feesOf('GBP', 'JPY', 'KWD') } });

describe('a sample', () => {
  it('ends with the month that is asked for and goes back over the year', () => {
    expect([months[0], months[2], months.at(-1), months.length]).toEqual(['2025-11', '2026-01', '2026-10', 12]);
  });

  it('is the same file from the same seed, plain or gz, and another one from another seed', async () => {
    const { rows } = await writeSample(bench.path('once.csv'), options);
    await writeSample(bench.path('again.csv.gz'), options);
    await writeSample(bench.path('other.csv'), { ...options, seed: 7 });
    const once = readFileSync(bench.path('once.csv'), 'utf8');
    expect(gunzipSync(readFileSync(bench.path('again.csv.gz'))).toString('utf8')).toBe(once);
    expect(readFileSync(bench.path('other.csv'), 'utf8')).not.toBe(once);
    expect(once.split('\n')).toHaveLength(rows + 2);
  });

  it('keeps a merchant’s month as it is when merchants or months are added', () => {
    const few = [...sampleRows({ ...options, merchants: 10, months: months.slice(-1) })];
    const many = [...sampleRows(options)].filter(
      ({ month, merchant }) => month === '2026-10' && merchant <= 'm-0000010',
    );
    expect(many).toEqual(few);
  });

  it('has refunds, several rows a merchant, currencies of 0, 2 and 3 digits, a negative merchant and a zero one', () => {
    const rows = [...sampleRows(options)];
    const oracle = sampleOracle(options);
    expect(new Set(rows.map(({ currency }) => currency))).toEqual(new Set(['JPY', 'GBP', 'KWD']));
    expect(rows.filter(({ minor }) => minor < 0n).length).toBeGreaterThan(rows.length / 50);
    expect(oracle.filter(({ transactions }) => transactions > 1).length).toBeGreaterThan(oracle.length / 2);
    const last = oracle.filter(({ month }) => month === '2026-10');
    expect(last.find(({ merchant }) => merchant === 'm-0000001')?.net).toBeLessThan(0n);
    expect(last.find(({ merchant }) => merchant === 'm-0000002')).toMatchObject({ transactions: 2, net: 0n });
  });

  it('has a merchant whose month is zero under the default rule too, fees included', async () => {
    await bench.empty();
    const settlement = parseRule(JSON.parse(readFileSync('rules/settlement.json', 'utf8')), 'rules/settlement.json');
    await writeSample(bench.path('month.csv'), { ...options, months: months.slice(-1) });
    await bench.importPath(bench.path('month.csv'), { rule: settlement });
    await bench.settle(settlement, '2026-10');
    const { rows } = await bench.db.query(
      `select merchant, sales, fees, net, payout, closing from settlement.line where merchant <= 'm-0000002' order by merchant`,
    );
    expect(rows).toEqual([
      { merchant: 'm-0000001', sales: 1500n, fees: 42n, net: -3292n, payout: 0n, closing: -3292n },
      { merchant: 'm-0000002', sales: 20n, fees: 0n, net: 0n, payout: 0n, closing: 0n },
    ]);
  });
});

describe('a year of the sample, imported and settled', () => {
  beforeAll(async () => {
    await bench.empty();
    const { rows } = await writeSample(bench.path('year.csv.gz'), options);
    expect(await bench.importPath(bench.path('year.csv.gz'), { rule })).toMatchObject({ rows, added: rows });
    for (const month of months) await bench.settle(rule, month);
  });

  it('comes to the oracle in every merchant-month and currency', async () => {
    expect(asTexts(await settledMonths(bench, months))).toEqual(asTexts(sampleOracle(options)));
  });

  it('carries every balance forward once, and its ledger is 0', async () => {
    const totals = await carried(bench, '2026-10');
    expect(totals.map(({ currency }) => currency)).toEqual(['GBP', 'JPY', 'KWD']);
    for (const { currency, net, payouts, closings } of totals) {
      const generated = sampleOracle(options)
        .filter((entry) => entry.currency === currency)
        .reduce((sum, entry) => sum + entry.net, 0n);
      expect(net).toBe(generated);
      expect(payouts + closings).toBe(generated);
    }
    expect(await bench.gaps()).toEqual({ GBP: 0n, JPY: 0n, KWD: 0n });
  });

  it('adds nothing when it is written anew and imported again', async () => {
    const { rows } = await writeSample(bench.path('again.csv'), options);
    expect(await bench.importPath(bench.path('again.csv'), { rule })).toMatchObject({ rows, added: 0, known: rows });
  });
});
