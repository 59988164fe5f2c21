import { beforeEach, expect, it } from 'vitest';
import { csv } from './rows.ts';
import { Bench, contextOf, job, ruleWith } from './settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

const rule = ruleWith({
  parameters: { fees: { GBP: { basisPoints: 290, fixed: '30' }, JPY: { basisPoints: 180, fixed: '0' } } },
});
const estimate = (period: string) => {
  if (job.estimate === undefined) throw new Error('the settlement can tell what it expects');
  return job.estimate(bench.db, contextOf(rule, period));
};

it('what an approver is shown is, to the digit, what the document says later', async () => {
  await bench.importText(
    csv('m-1 2026-03-01 19.99 GBP', 'm-2 2026-03-02 -5.00 GBP', 'm-1 2026-03-02 500 JPY', 'm-3 2026-04-01 8.20 GBP'),
    { rule },
  );
  for (const [period, subjects] of [
    ['2026-03', 2],
    ['2026-04', 2],
  ] as const) {
    const expected = await estimate(period);
    expect(expected.subjects).toBe(subjects);
    const { result } = await bench.settle(rule, period);
    const { totals } = result.document;
    expect(Object.keys(expected.amounts)).toEqual(Object.keys(totals));
    for (const [currency, sums] of Object.entries(expected.amounts)) expect(totals[currency]).toMatchObject(sums);
  }
  expect((await estimate('2026-04')).amounts['GBP']).toMatchObject({ carryIn: '-500' });
});

it('a month that nobody made a row for yet comes to nothing', async () => {
  expect(await estimate('2031-01')).toEqual({ subjects: 0, amounts: {} });
});
