import type { Tx } from '../src/kernel/sql.ts';

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** The median of some figures, with the least and the most; of an even number of them the middle of the two in the middle. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    least: at(0),
    most: at(sorted.length - 1),
  };
}

/** The median alone. */
export function medianOf(values: readonly number[]): number {
  return spreadOf(values).median;
}

/** How many bytes of WAL the server has written since it was made. */
export async function walPosition(tx: Tx): Promise<bigint> {
  const { rows } = await tx.query<{ at: bigint }>(`select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::int8 as at`);
  return rows[0]?.at ?? 0n;
}
