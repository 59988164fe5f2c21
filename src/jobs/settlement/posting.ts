/**
 * Posts lines by double entry, a transfer row each: sales, refunds with the sides swapped, fees, and the payout into transit.
 * Nothing is posted for a zero. A common table expression over `line` (line.ts), with the key as $10.
 */
export const POSTED = `
  posted as (
    insert into settlement.posting (key, merchant, currency, kind, debit, credit, amount)
    select $10, l.merchant, l.currency, p.kind, p.debit, p.credit, p.amount
      from line l
     cross join lateral (values
           ('fee', 'payable', 'fees', l.fees),
           ('payout', 'payable', 'in_transit', l.payout),
           ('refund', 'payable', 'clearing', l.refunds),
           ('sale', 'clearing', 'payable', l.sales)) as p (kind, debit, credit, amount)
     where p.amount > 0
  )`;
