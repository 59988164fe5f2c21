import { beforeEach, describe, expect, it } from 'vitest';
import { inTransit } from '../../../src/jobs/settlement/in-transit.ts';
import { transaction } from '../../../src/store/database.ts';
import { csv, csvWithIds, linesOf } from './rows.ts';
import { Bench, contextOf, feesOf, job, ruleWith } from './settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

const rule = ruleWith();
const LARGEST = '92233720368547758.07';

const inspect = (period = '2026-03') => transaction(bench.db, {}, (tx) => job.inspect(tx, contextOf(rule, period)));

async function stateOf(period: string): Promise<string | undefined> {
  const { rows } = await bench.db.query<{ state: string }>('select state from settlement.period where period = $1', [
    period,
  ]);
  return rows[0]?.state;
}

describe('sales or refunds of a merchant beyond what a line can hold', () => {
  it.each([
    [
      'with ids',
      csvWithIds(`t1 m-1 2026-03-01 ${LARGEST} GBP`, 't2 m-2 2026-03-01 1.00 GBP', `t3 m-1 2026-03-02 ${LARGEST} GBP`),
    ],
    ['without ids', csv(`m-1 2026-03-01 ${LARGEST} GBP`, 'm-2 2026-03-01 1.00 GBP', `m-1 2026-03-02 ${LARGEST} GBP`)],
  ])('refuse the file %s by merchant and currency, and nothing of it is stored', async (_what, file) => {
    expect(await bench.importText(file)).toMatchObject({
      kind: 'refused',
      added: 0,
      refused: [{ line: 2, reason: 'the sales of m-1 in GBP in 2026-03 add up to more than the ledger can hold' }],
      refusedTotal: 1,
    });
    await bench.importText(csvWithIds('t2 m-2 2026-03-01 1.00 GBP'));
    expect(await inspect()).toEqual({ kind: 'ready' });
  });

  it('refuse the second of two files, also when both come at once', async () => {
    const files = [1, 2].map((n) => csvWithIds(`t${n} m-1 2026-03-0${n} -${LARGEST} GBP`));
    const results = await Promise.all(files.map((file, n) => bench.importText(file, {}, `${n}.csv`)));
    expect(results.map(({ kind }) => kind).sort()).toEqual(['imported', 'refused']);
    expect(results.flatMap(({ refused }) => refused.map(({ reason }) => reason))).toEqual([
      'the refunds of m-1 in GBP in 2026-03 add up to more than the ledger can hold',
    ]);
  });

  it('of another month, currency or merchant do not count together', async () => {
    const file = csvWithIds(
      `t1 m-1 2026-03-01 ${LARGEST} GBP`,
      `t2 m-2 2026-03-01 ${LARGEST} GBP`,
      `t3 m-1 2026-03-01 ${LARGEST} EUR`,
      `t4 m-1 2026-04-01 ${LARGEST} GBP`,
      `t5 m-1 2026-04-01 -${LARGEST} GBP`,
    );
    expect(await bench.importText(file)).toMatchObject({ kind: 'imported', added: 5 });
    const { result } = await bench.settle(rule, '2026-03');
    expect(result.document.totals['GBP']).toMatchObject({
      sales: '18446744073709551614',
      payout: '18446744073709551614',
    });
    expect(await bench.gaps()).toEqual({ EUR: 0n, GBP: 0n });
    expect(await inTransit(bench.db)).toMatchObject({ GBP: 18446744073709551614n });
    expect((await bench.settle(rule, '2026-04')).result.payouts).toBe(0);
  });
});

describe('a payable amount beyond what a line can hold', () => {
  beforeEach(async () => {
    await bench.importText(csvWithIds('t1 m-1 2026-02-01 5.00 GBP', 't2 m-2 2026-02-01 -5.00 GBP'));
    await bench.settle(ruleWith({ parameters: { fees: feesOf('GBP'), minimum: { GBP: '1000' } } }), '2026-02');
    await bench.importText(csvWithIds(`t3 m-1 2026-03-01 ${LARGEST} GBP`, `t4 m-2 2026-03-01 -${LARGEST} GBP`));
  });
  const reason =
    '2026-03 has sums beyond what the ledger can hold: the payable amount of m-1 in GBP, the payable amount of m-2 in GBP';

  it('holds the period by merchant and currency, and at the seal fails the attempt and opens the period again', async () => {
    expect(await inspect()).toEqual({
      kind: 'held',
      code: 'sum_too_large',
      reason: expect.stringContaining(`${reason}; import a correcting row of that merchant and currency`),
    });
    await expect(bench.claim(contextOf(rule, '2026-03'))).rejects.toMatchObject({
      code: 'sum_too_large',
      message: reason,
    });
    expect(await stateOf('2026-03')).toBe('open');
  });

  it('is shown to an approver as what it is', async () => {
    if (job.estimate === undefined) throw new Error('the settlement can tell what it expects');
    expect((await job.estimate(bench.db, contextOf(rule, '2026-03'))).amounts['GBP']).toMatchObject({
      sales: '9223372036854775807',
      payout: '9223372036854776307',
      closing: '-9223372036854776307',
    });
  });

  it('is cured by a correcting row, and settled then', async () => {
    await bench.importText(csvWithIds('t5 m-1 2026-03-02 -5.00 GBP', 't6 m-2 2026-03-02 5.00 GBP'));
    expect(await inspect()).toEqual({ kind: 'ready' });
    await bench.settle(rule, '2026-03');
    expect(await linesOf(bench, '2026-03')).toMatchObject([
      { merchant: 'm-1', payout: 9223372036854775807n, closing: 0n },
      { merchant: 'm-2', payout: 0n, closing: -9223372036854775807n },
    ]);
  });
});

describe('sums that a hand or an earlier release stored', () => {
  const byHand = (amount: string, id: string) =>
    bench.db.query(
      `insert into settlement.transaction (source, id, merchant, currency, amount, occurred_on, period, import_id)
       values ('generic', $2, 'm-1', 'GBP', $1::int8, '2026-03-01', '2026-03', 0)`,
      [amount, id],
    );

  const fees = (basisPoints: number, fixed: string) =>
    ruleWith({ parameters: { fees: { GBP: { basisPoints, fixed } } } });

  it.each([
    ['sales', ['9223372036854775807', '1'], rule],
    ['refunds', ['-9223372036854775808'], rule],
    ['fees', ['9223372036854775807'], fees(10_000, '1')],
    ['net amount', ['-9223372036854775807', '1'], fees(0, '3')],
  ])(
    'beyond the limit in %s are refused by the seal, by merchant, and the period stays open',
    async (part, amounts, costs) => {
      await bench.preparePeriods(costs);
      for (const [n, amount] of amounts.entries()) await byHand(amount, `t${n}`);
      await expect(bench.claim(contextOf(costs, '2026-03'))).rejects.toMatchObject({
        code: 'sum_too_large',
        message: `2026-03 has sums beyond what the ledger can hold: the ${part} of m-1 in GBP`,
      });
      expect(await stateOf('2026-03')).toBe('open');
    },
  );
});
