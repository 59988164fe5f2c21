import type { Gateway } from '../gateway/port.ts';
import { readJournal } from '../gateway/simulator/journal.ts';
import type { Tx } from '../kernel/sql.ts';

/** Ten merchants to be paid, in a table that says of each whether it was: what a simple worker has instead of a ledger. */
export const PAYDAY = 10;

/** Makes the table anew, nobody paid. */
export async function makePayday(tx: Tx): Promise<void> {
  await tx.query(`drop table if exists public.payday`);
  await tx.query(`create table public.payday (merchant text primary key, paid boolean not null default false)`);
  await tx.query(`insert into public.payday (merchant) select 'simple-' || i from generate_series(1, $1::int4) i`, [
    PAYDAY,
  ]);
}

export async function unpaid(tx: Tx): Promise<string[]> {
  const { rows } = await tx.query<{ merchant: string }>(
    'select merchant from public.payday where not paid order by length(merchant), merchant',
  );
  return rows.map(({ merchant }) => merchant);
}

/** Sends a merchant's pay under a number; true where the counterparty said that it has paid. */
export async function pay(gateway: Gateway, merchant: string, number: string): Promise<boolean> {
  const body = JSON.stringify({ amount: '1000', currency: 'GBP', destination: merchant, reference: number });
  return (await gateway.send(number, body)).kind === 'accepted';
}

export async function markPaid(tx: Tx, merchant: string): Promise<void> {
  await tx.query('update public.payday set paid = true where merchant = $1', [merchant]);
}

/** How many were paid, and how many of them more than once, by the counterparty's journal: whose name begins so. */
export function paidMerchants(journal: string, beginning: string): { readonly paid: number; readonly twice: number } {
  const times = new Map<string, number>();
  readJournal(journal, ({ decision, transfer }) => {
    if (decision !== 'executed' || transfer === null || !transfer.destination.startsWith(beginning)) return;
    const account = `${transfer.destination} ${transfer.currency}`;
    times.set(account, (times.get(account) ?? 0) + 1);
  });
  const counts = [...times.values()];
  return { paid: counts.length, twice: counts.filter((n) => n > 1).length };
}
