import type { Tx } from '../../kernel/sql.ts';

/** The balance of the account in transit, per currency and in minor units: what was paid out and has no fate by the books. */
export async function inTransit(tx: Tx): Promise<Readonly<Record<string, bigint>>> {
  const { rows } = await tx.query<{ currency: string; balance: string }>(
    `select currency, sum(case when credit = 'in_transit' then amount else -amount end)::text as balance
       from settlement.posting
      where 'in_transit' in (debit, credit)
      group by currency order by currency`,
  );
  return Object.fromEntries(rows.map((row) => [row.currency, BigInt(row.balance)]));
}
