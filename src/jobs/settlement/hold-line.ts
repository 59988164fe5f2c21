import type { Tx } from '../../kernel/sql.ts';

/** A place among a key's lines: the last merchant of its period, in the order of slices. */
export interface LinePlace {
  readonly merchant: string;
  readonly currency: string;
}

/** The last place that the settlement of a period will write, or null where the period has no row. */
export async function lastPlace(tx: Tx, period: string): Promise<LinePlace | null> {
  const { rows } = await tx.query<LinePlace>(
    `select merchant, currency from settlement.transaction
      where period = $1 order by merchant desc, currency desc limit 1`,
    [period],
  );
  return rows[0] ?? null;
}

/**
 * For faults on purpose: holds the place of a line in a transaction that is never committed, so that the slice which writes
 * it waits in its middle, after its fence was checked and before anything of it is visible, until the caller rolls back.
 */
export async function holdLine(tx: Tx, key: string, period: string, place: LinePlace): Promise<void> {
  await tx.query(
    `insert into settlement.line (key, merchant, currency, period, transactions, sales, refunds, fees, net, carry_in, payout, closing)
     values ($1, $2, $3, $4, 0, 0, 0, 0, 0, 0, 0, 0)`,
    [key, place.merchant, place.currency, period],
  );
}

/** How many documents a key has; the constraint allows one. */
export async function countDocuments(tx: Tx, key: string): Promise<number> {
  const { rows } = await tx.query<{ documents: number }>(
    `select count(*)::int4 as documents from settlement.document where key = $1`,
    [key],
  );
  return rows[0]?.documents ?? 0;
}

/** The periods that have transactions, oldest first. */
export async function periodsWithRows(tx: Tx): Promise<string[]> {
  const { rows } = await tx.query<{ period: string }>(
    `select p.period from settlement.period p
      where exists (select from settlement.transaction t where t.period = p.period) order by p.starts`,
  );
  return rows.map((row) => row.period);
}
