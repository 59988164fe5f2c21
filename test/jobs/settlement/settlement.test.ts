import canonicalize from 'canonicalize';
import { beforeEach, describe, expect, it } from 'vitest';
import { effectNumber } from '../../../src/kernel/effect-number.ts';
import { csv, csvWithIds, linesOf } from './rows.ts';
import { Bench, contextOf, feesOf, ruleWith } from './settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

const rule = ruleWith();

describe('a line', () => {
  it('has sales, refunds and fees of the period, per merchant and currency', async () => {
    const withFees = ruleWith({
      parameters: { fees: { GBP: { basisPoints: 290, fixed: '30' }, JPY: { basisPoints: 180, fixed: '0' } } },
    });
    await bench.importText(
      csv('m-1 2026-03-01 19.99 GBP', 'm-1 2026-03-31 -5.00 GBP', 'm-1 2026-03-02 500 JPY', 'm-2 2026-03-05 8.20 GBP'),
      { rule: withFees },
    );
    await bench.settle(withFees, '2026-03');
    expect(await linesOf(bench, '2026-03')).toEqual([
      // 2.9 % of 19.99 is 0.57971, and 0.30: no fee comes back with the refund.
      line('m-1', 'GBP', { sales: 1999n, refunds: 500n, fees: 88n, net: 1411n, payout: 1411n }),
      line('m-1', 'JPY', { sales: 500n, fees: 9n, net: 491n, payout: 491n }),
      line('m-2', 'GBP', { sales: 820n, fees: 54n, net: 766n, payout: 766n }),
    ]);
  });

  it('rounds each fee by itself, so that the whole is the sum of its parts', async () => {
    const withFees = ruleWith({ parameters: { fees: { GBP: { basisPoints: 100, fixed: '0' } } } });
    await bench.importText(csv(...Array.from({ length: 10_000 }, () => 'm-1 2026-03-01 0.10 GBP')), { rule: withFees });
    const { result } = await bench.settle(withFees, '2026-03');
    // 1 % of 10p is 0.1p, which rounds to nothing ten thousand times.
    expect(result.document.totals['GBP']).toMatchObject({ sales: '100000', fees: '0', payout: '100000' });
  });

  it('exists for an amount of zero, and pays nothing', async () => {
    await bench.importText(csv('m-1 2026-03-01 0.00 GBP'));
    const { effects } = await bench.settle(rule, '2026-03');
    expect(await linesOf(bench, '2026-03')).toEqual([line('m-1', 'GBP', {})]);
    expect(effects).toEqual([]);
  });
});

describe('a net that is zero, negative or below the minimum (C44)', () => {
  const minimum = ruleWith({ parameters: { fees: feesOf('GBP'), minimum: { GBP: '50' } } });

  it('pays nothing, keeps its line, and is carried into the next period once', async () => {
    await bench.importText(
      csv(
        'zero 2026-03-01 7.00 GBP',
        'zero 2026-03-02 -7.00 GBP',
        'negative 2026-03-02 -5.00 GBP',
        'small 2026-03-02 0.30 GBP',
        'exact 2026-03-02 0.50 GBP',
        'negative 2026-04-02 6.00 GBP',
        'other 2026-05-02 9.00 GBP',
      ),
      { rule: minimum },
    );
    const march = await bench.settle(minimum, '2026-03');
    const april = await bench.settle(minimum, '2026-04');
    const may = await bench.settle(minimum, '2026-05');
    expect(await linesOf(bench, '2026-03')).toEqual([
      line('exact', 'GBP', { sales: 50n, net: 50n, payout: 50n }),
      line('negative', 'GBP', { refunds: 500n, net: -500n, closing: -500n }),
      line('small', 'GBP', { sales: 30n, net: 30n, closing: 30n }),
      line('zero', 'GBP', { sales: 700n, refunds: 700n }),
    ]);
    expect(await linesOf(bench, '2026-04')).toEqual([
      line('negative', 'GBP', { sales: 600n, net: 600n, carryIn: -500n, payout: 100n }),
      line('small', 'GBP', { carryIn: 30n, closing: 30n }),
    ]);
    expect(await linesOf(bench, '2026-05')).toEqual([
      line('other', 'GBP', { sales: 900n, net: 900n, payout: 900n }),
      line('small', 'GBP', { carryIn: 30n, closing: 30n }),
    ]);
    expect([march, april, may].map(({ effects }) => effects.map((effect) => effect.number))).toEqual([
      ['settlement:2026-03:exact:GBP:payout'],
      ['settlement:2026-04:negative:GBP:payout'],
      ['settlement:2026-05:other:GBP:payout'],
    ]);
    expect(await bench.gaps()).toEqual({ GBP: 0n });
  });

  it('is carried from the latest document where a period between them was skipped', async () => {
    await bench.importText(csv('m-1 2026-01-02 -5.00 GBP', 'm-1 2026-03-02 6.00 GBP'));
    await bench.settle(rule, '2026-01');
    await bench.db.query(`update settlement.period set state = 'skipped' where period = '2026-02'`);
    await bench.settle(rule, '2026-03');
    expect(await linesOf(bench, '2026-03')).toEqual([
      line('m-1', 'GBP', { sales: 600n, net: 600n, carryIn: -500n, payout: 100n }),
    ]);
  });

  it('has no balance in one currency because of another', async () => {
    await bench.importText(csv('m-1 2026-03-02 -5.00 GBP', 'm-1 2026-03-02 600 JPY'));
    await bench.settle(rule, '2026-03');
    expect(await linesOf(bench, '2026-03')).toEqual([
      line('m-1', 'GBP', { refunds: 500n, net: -500n, closing: -500n }),
      line('m-1', 'JPY', { sales: 600n, net: 600n, payout: 600n }),
    ]);
  });
});

describe('a payout', () => {
  it('has the number that the kernel derives, and a canonical body in minor units of its currency (C40)', async () => {
    await bench.importText(csv('m-1 2026-03-02 80.00 EUR', 'm-1 2026-03-02 80 JPY', 'm-1 2026-03-02 1.234 KWD'));
    const { effects } = await bench.settle(rule, '2026-03');
    const expected = [
      { currency: 'EUR', amount: '8000' },
      { currency: 'JPY', amount: '80' },
      { currency: 'KWD', amount: '1234' },
    ].map(({ currency, amount }) => {
      const number = effectNumber({ key: 'settlement:2026-03', subject: 'm-1', currency, effect: 'payout' });
      const body = canonicalize({ reference: number, destination: 'm-1', currency, amount });
      return { number, subject: 'm-1', effect: 'payout', destination: 'm-1', body };
    });
    expect(effects).toEqual(expected);
  });

  it('and the document are derived again letter for letter from the same transactions, whatever the slices', async () => {
    const rows = Array.from({ length: 30 }, (_, n) => `t${n} m-${n % 11} 2026-03-0${1 + (n % 9)} ${n}.50 GBP`);
    await bench.importText(csvWithIds(...rows));
    const once = await bench.settle(rule, '2026-03');
    await bench.empty();
    await bench.importText(csvWithIds(...rows.toReversed()), {}, 'renamed.csv');
    const again = await bench.settle(rule, '2026-03');
    expect(again).toEqual(once);
    await bench.empty();
    await bench.importText(csvWithIds(...rows));
    const inSmallSlices = await bench.settle(ruleWith({ subjectsPerSlice: 2 }), '2026-03');
    expect(inSmallSlices.effects).toEqual(once.effects);
    expect(inSmallSlices.result.document.totals).toEqual(once.result.document.totals);
  });
});

describe('the slice plan', () => {
  it('puts every merchant with a transaction or a balance into exactly one slice, in byte order', async () => {
    const small = ruleWith({ subjectsPerSlice: 3 });
    await bench.importText(
      csv(
        'carried 2026-02-01 -1.00 GBP',
        ...['b', 'a-1', 'a', 'z9', '10', '9', 'm'].map((m) => `${m} 2026-03-01 1.00 GBP`),
      ),
    );
    await bench.settle(small, '2026-02');
    const slices = await bench.claim(contextOf(small, '2026-03'));
    expect(slices).toEqual([
      { slice: 1, firstSubject: '10', lastSubject: 'a' },
      { slice: 2, firstSubject: 'a-1', lastSubject: 'carried' },
      { slice: 3, firstSubject: 'm', lastSubject: 'z9' },
    ]);
  });

  it('is made of all known merchants where there is a transaction for each, and of those that moved where most are idle', async () => {
    const small = ruleWith({ subjectsPerSlice: 2 });
    const merchants = ['a', 'b', 'c', 'd', 'e'];
    await bench.importText(
      csv(
        ...merchants.map((m) => `${m} 2026-02-01 1.00 GBP`),
        ...['b', 'e'].map((m) => `${m} 2026-03-01 1.00 GBP`),
        ...Array.from({ length: 5 }, (_, i) => `e 2026-04-0${i + 1} 1.00 GBP`),
      ),
    );
    const planned = async (period: string) => {
      const slices = await bench.claim(contextOf(small, period));
      return slices.map(({ firstSubject, lastSubject }) => `${firstSubject}-${lastSubject}`);
    };
    await bench.settle(small, '2026-02');
    expect(await planned('2026-03')).toEqual(['b-e']);
    expect(await planned('2026-04')).toEqual(['a-b', 'c-d', 'e-e']);
    const { result } = await bench.settle(small, '2026-04');
    expect(result).toMatchObject({ lines: 1, payouts: 1 });
  });

  it('has no slice for an empty period, which closes with a document of nothing', async () => {
    await bench.preparePeriods(rule);
    const { result, effects } = await bench.settle(rule, '2026-03');
    expect(result).toMatchObject({ document: { totals: {} }, lines: 0, payouts: 0 });
    expect(effects).toEqual([]);
  });
});

function line(merchant: string, currency: string, amounts: Record<string, bigint>): Record<string, unknown> {
  const nothing = { sales: 0n, refunds: 0n, fees: 0n, net: 0n, carryIn: 0n, payout: 0n, closing: 0n };
  return { merchant, currency, ...nothing, ...amounts };
}
