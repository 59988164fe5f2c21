import type { Tx } from '../../kernel/sql.ts';
import type { Adjusting, Adjustment } from '../adjustment.ts';
import { documentId, insertDocument, sha256 } from './document.ts';
import { holdNextOpen } from './period-row.ts';

/** See Adjusting. Cash and transit belong to the payouts, hold to its releases. */
export const adjusting: Adjusting = {
  accounts: ['clearing', 'fees', 'cash'],
  async knownSubjects(tx, subjects) {
    const { rows } = await tx.query<{ id: string }>('select id from settlement.merchant where id = any ($1::text[])', [
      subjects,
    ]);
    return new Set(rows.map((row) => row.id));
  },
  async post(tx, adjustment) {
    const period = await holdNextOpen(tx, adjustment);
    await storePostings(tx, adjustment, period);
    await postTransfers(tx, adjustment);
    const document = await storeDocument(tx, adjustment);
    return { document, settledBy: period };
  },
};

async function storePostings(tx: Tx, adjustment: Adjustment, period: string): Promise<void> {
  const { key, postings, actor, reason } = adjustment;
  const { rowCount } = await tx.query(
    `insert into settlement.assigned_posting (key, merchant, currency, kind, account, amount, period, actor, reason)
     select $1, m.merchant, m.currency, 'manual', m.account, m.amount, $6, $7, $8
       from unnest($2::text[], $3::text[], $4::text[], $5::int8[]) as m (merchant, currency, account, amount)
      order by m.merchant, m.currency`,
    [
      key,
      postings.map((posting) => posting.subject),
      postings.map((posting) => posting.currency),
      postings.map((posting) => posting.account),
      postings.map((posting) => posting.amount),
      period,
      actor,
      reason,
    ],
  );
  if (rowCount !== postings.length) throw new Error(`${key}: ${rowCount} of ${postings.length} postings were stored`);
}

async function postTransfers(tx: Tx, { key, postings }: Adjustment): Promise<void> {
  const { rowCount } = await tx.query(
    `insert into settlement.posting (key, merchant, currency, kind, debit, credit, amount)
     select key, merchant, currency, kind, case when amount > 0 then account else 'payable' end,
            case when amount > 0 then 'payable' else account end, abs(amount)
       from settlement.assigned_posting
      where key = $1
      order by merchant, currency`,
    [key],
  );
  if (rowCount !== postings.length) throw new Error(`${key}: ${rowCount} of ${postings.length} transfers were posted`);
}

/** The adjustment's document: what it comes to per currency, and a hash of its postings in order. */
async function storeDocument(tx: Tx, { key, period, postings, ruleVersion }: Adjustment) {
  const words = postings.map(({ subject, currency, account, amount }) =>
    [subject, currency, account, amount].join('|'),
  );
  const hash = sha256(words.sort().join('\n'));
  const document = { id: documentId(key, hash), totals: totalsOf(postings) };
  await insertDocument(tx, { ...document, key, period, hash, lines: postings.length, fence: 0n, ruleVersion });
  return document;
}

function totalsOf(postings: Adjustment['postings']): Record<string, { assigned: string }> {
  const sums = new Map<string, bigint>();
  for (const { currency, amount } of postings) sums.set(currency, (sums.get(currency) ?? 0n) + amount);
  const sorted = [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted.map(([currency, sum]) => [currency, { assigned: sum.toString() }]));
}
