import { parseEffectNumber } from '../../kernel/effect-number.ts';
import type { Instant, Tx } from '../../kernel/sql.ts';
import type { Hold, HoldFilter } from '../holds.ts';

/** A posting into hold beside its release; `released` columns are null where there is none. */
const HOLD = `
  select p.key || ':' || p.merchant || ':' || p.currency || ':payout' as number, p.key, p.merchant as subject, p.currency, p.amount,
         case p.kind when 'held' then 'failed' else 'returned' end as cause,
         case when a.key is null then 'held' else 'released' end as state, p.posted_at as "heldAt",
         a.period, a.actor, a.reason, a.at
    from settlement.posting p
    left join settlement.assigned_posting a
      on a.key = p.key and a.merchant = p.merchant and a.currency = p.currency and a.kind = 'release'
   where p.kind in ('held', 'returned')`;

type HoldRow = Omit<Hold, 'release'> & {
  readonly period: string | null;
  readonly actor: string;
  readonly reason: string;
  readonly at: Instant;
};

/** See Holds.list. Reads the holds by an index of their own, not what was paid. */
export async function listHolds(tx: Tx, ask: HoldFilter): Promise<readonly Hold[]> {
  const after = ask.after === null ? { key: '', subject: '', currency: '' } : parseEffectNumber(ask.after);
  const { rows } = await tx.query<HoldRow>(
    `${HOLD} and ($1::text is null or p.key = $1) and (p.key, p.merchant, p.currency) > ($2, $3, $4)
             and case when a.key is null then 'held' else 'released' end = any ($5::text[])
       order by p.key, p.merchant, p.currency
       limit $6`,
    [ask.key, after.key, after.subject, after.currency, ask.states, ask.limit],
  );
  return rows.map(holdOf);
}

/** See Holds.find. Numbers of other effects than payouts have none. */
export async function findHolds(tx: Tx, numbers: readonly string[]): Promise<readonly Hold[]> {
  const parts = numbers.map(parseEffectNumber).filter(({ effect }) => effect === 'payout');
  if (parts.length === 0) return [];
  const { rows } = await tx.query<HoldRow>(
    `${HOLD} and (p.key, p.merchant, p.currency) in (select * from unnest($1::text[], $2::text[], $3::text[]))
       order by p.key, p.merchant, p.currency`,
    [parts.map(({ key }) => key), parts.map(({ subject }) => subject), parts.map(({ currency }) => currency)],
  );
  return rows.map(holdOf);
}

function holdOf({ period, actor, reason, at, ...hold }: HoldRow): Hold {
  return { ...hold, release: period === null ? null : { period, actor, reason, at } };
}
