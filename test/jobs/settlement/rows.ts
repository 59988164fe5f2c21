import type { Bench } from './settling.ts';

/** A merchant's line as a test compares it: amounts as bigint, in minor units. */
export interface Line {
  readonly merchant: string;
  readonly currency: string;
  readonly sales: bigint;
  readonly refunds: bigint;
  readonly fees: bigint;
  readonly net: bigint;
  readonly carryIn: bigint;
  readonly payout: bigint;
  readonly closing: bigint;
}

/** The lines of a period's document, in key order. */
export async function linesOf(bench: Bench, period: string): Promise<readonly Line[]> {
  const { rows } = await bench.db.query<Line>(
    `select merchant, currency, sales, refunds, fees, net, carry_in as "carryIn", payout, closing
       from settlement.line where key = 'settlement:' || $1 order by merchant, currency`,
    [period],
  );
  return rows;
}

/** A CSV of source `generic` from rows of `merchant date amount currency`, without ids. */
export function csv(...rows: readonly string[]): string {
  const lines = rows.map((row) => row.split(' ').join(','));
  return `merchant,date,amount,currency\n${lines.map((line) => `${line}\n`).join('')}`;
}

/** A CSV of source `generic` from rows of `id merchant date amount currency`. */
export function csvWithIds(...rows: readonly string[]): string {
  const lines = rows.map((row) => row.split(' ').join(','));
  return `id,merchant,date,amount,currency\n${lines.map((line) => `${line}\n`).join('')}`;
}

/** Where each transaction was put: its amount, its period, and the period it came too late for. */
export async function placesOf(
  bench: Bench,
): Promise<readonly { readonly amount: bigint; readonly period: string; readonly lateFrom: string | null }[]> {
  const { rows } = await bench.db.query<{ amount: bigint; period: string; lateFrom: string | null }>(
    `select amount, period, late_from as "lateFrom" from settlement.transaction order by amount, period`,
  );
  return rows;
}
