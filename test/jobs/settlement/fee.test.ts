import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fee } from '../../../src/kernel/money.ts';
import { Bench } from './settling.ts';

const bench = Bench.forThisFile();

interface Sale {
  readonly amount: bigint;
  readonly basisPoints: bigint;
  readonly fixed: bigint;
}

/** The fees of many sales as the database computes them, in order. */
async function feesInSql(sales: readonly Sale[]): Promise<bigint[]> {
  const { rows } = await bench.db.query<{ fee: bigint }>(
    `select settlement.fee(s.amount, s.basis_points, s.fixed) as fee
       from unnest($1::int8[], $2::int8[], $3::int8[]) with ordinality as s (amount, basis_points, fixed, n)
      order by n`,
    [sales.map((sale) => sale.amount), sales.map((sale) => sale.basisPoints), sales.map((sale) => sale.fixed)],
  );
  return rows.map((row) => row.fee);
}

const amount = fc.oneof(
  fc.bigInt({ min: 1n, max: 1_000_000n }),
  fc.bigInt({ min: 1n, max: 2n ** 62n }),
  // Ties: 50 * bps / 10,000 and its like end on exactly one half.
  fc.bigInt({ min: 1n, max: 10_000n }).map((n) => n * 50n),
);
const sale = fc.record({
  amount,
  basisPoints: fc.bigInt({ min: 0n, max: 10_000n }),
  fixed: fc.bigInt({ min: 0n, max: 100_000n }),
});

it('a fee is the same in SQL and in the kernel, whatever the amount, to the half', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(sale, { minLength: 100, maxLength: 400 }), async (sales) => {
      expect(await feesInSql(sales)).toEqual(sales.map(fee));
    }),
    { numRuns: 40 },
  );
});

it('a tie goes to the even fee, up as well as down', async () => {
  const ties = [50n, 150n, 250n, 350n].map((tie) => ({ amount: tie, basisPoints: 100n, fixed: 0n }));
  expect(await feesInSql(ties)).toEqual([0n, 2n, 2n, 4n]);
});

it('the largest amount a column holds has a fee', async () => {
  const largest = { amount: 2n ** 63n - 1n, basisPoints: 10_000n, fixed: 0n };
  expect(await feesInSql([largest])).toEqual([fee(largest)]);
});
