import type { Tx } from '../../kernel/sql.ts';
import type { GrantedContext, SliceRange } from '../job.ts';

/**
 * Posts the slice's lines by double entry, a transfer row each: sales, refunds with the sides swapped, fees, and the payout
 * into transit. Derived from the lines alone, which read their inputs once. Nothing is posted for a zero.
 */
export async function postLines(tx: Tx, context: GrantedContext, slice: SliceRange): Promise<void> {
  await tx.query(
    `insert into settlement.posting (key, merchant, currency, kind, debit, credit, amount)
     select l.key, l.merchant, l.currency, p.kind, p.debit, p.credit, p.amount
       from settlement.line l
      cross join lateral (values
            ('fee', 'payable', 'fees', l.fees),
            ('payout', 'payable', 'in_transit', l.payout),
            ('refund', 'payable', 'clearing', l.refunds),
            ('sale', 'clearing', 'payable', l.sales)) as p (kind, debit, credit, amount)
      where l.key = $1 and l.merchant between $2 and $3 and p.amount > 0`,
    [context.key, slice.firstSubject, slice.lastSubject],
  );
}
