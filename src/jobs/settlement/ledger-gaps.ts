import type { Tx } from '../../kernel/sql.ts';

/**
 * The largest gap, per currency and in minor units, between a control account (the postings added up) and its independent
 * sum: payable = the closings of each merchant's latest line, and the assigned postings that no line has taken yet; clearing
 * = the transactions of closed periods, and of a sealed one those whose line exists already; fees = the lines' fees; in
 * transit = payouts without a fate; cash = payouts paid and not returned; hold = payouts held or returned and not released; a
 * manual posting counts against the account that it states. 0n everywhere when the ledger balances, which it does between any
 * two transactions: a slice writes lines and postings together, a release its row and its posting. One statement, so one
 * snapshot.
 */
export async function ledgerGaps(tx: Tx): Promise<Readonly<Record<string, bigint>>> {
  const { rows } = await tx.query<{ currency: string; gap: string }>(GAPS);
  return Object.fromEntries(rows.map((row) => [row.currency, BigInt(row.gap)]));
}

const GAPS = `with account as (
       select side.account, p.currency, sum(side.amount) as balance
         from settlement.posting p
        cross join lateral (values (p.debit, -p.amount), (p.credit, p.amount)) as side (account, amount)
        group by side.account, p.currency
     ), latest as (
       select distinct on (l.merchant, l.currency) l.currency, l.closing
         from settlement.line l
         join settlement.period p on p.period = l.period
        order by l.merchant, l.currency, p.starts desc
     ), waiting as (
       select a.currency, a.amount
         from settlement.assigned_posting a
         join settlement.period p on p.period = a.period
        where p.state in ('open', 'skipped')
           or p.state = 'sealed'
              and not exists (select from settlement.line l
                               where l.period = a.period and l.merchant = a.merchant and l.currency = a.currency)
     ), settled as (
       select t.currency, t.amount
         from settlement.transaction t
         join settlement.period p on p.period = t.period
        where p.state in ('closed', 'reconciled')
           or p.state = 'sealed'
              and exists (select from settlement.line l
                           where l.period = t.period and l.merchant = t.merchant and l.currency = t.currency)
     ), fate as (
       select l.currency, l.fees, l.payout,
              coalesce(bool_or(o.kind = 'paid'), false) as paid,
              coalesce(bool_or(o.kind = 'held'), false) as held,
              coalesce(bool_or(o.kind = 'returned'), false) as returned,
              coalesce(bool_or(r.kind = 'release'), false) as released
         from settlement.line l
         left join settlement.posting o
           on o.key = l.key and o.merchant = l.merchant and o.currency = l.currency and o.kind in ('paid', 'held', 'returned')
         left join settlement.assigned_posting r
           on r.key = l.key and r.merchant = l.merchant and r.currency = l.currency and r.kind = 'release'
        group by l.key, l.merchant, l.currency
     ), part as (
       select 'payable' as account, currency, sum(closing) as balance from latest group by currency
       union all
       select 'payable', currency, sum(amount) from waiting group by currency
       union all
       select account, currency, -sum(amount) from settlement.assigned_posting where kind = 'manual' group by account, currency
       union all
       select 'clearing', currency, -sum(amount) from settled group by currency
       union all
       select side.account, f.currency, sum(side.amount)
         from fate f
        cross join lateral (values
              ('fees', f.fees),
              ('in_transit', case when f.paid or f.held then 0 else f.payout end),
              ('cash', case when f.paid and not f.returned then f.payout else 0 end),
              ('hold', case when (f.held or f.returned) and not f.released then f.payout else 0 end)) as side (account, amount)
        group by side.account, f.currency
     ), independent as (
       select account, currency, sum(balance) as balance from part group by account, currency
     )
     select currency, max(abs(coalesce(a.balance, 0) - coalesce(i.balance, 0)))::text as gap
       from account a full join independent i using (account, currency)
      group by currency
      order by currency`;
