import { parseEffectNumber } from '../../kernel/effect-number.ts';
import type { Instant, Tx } from '../../kernel/sql.ts';
import type { HoldState } from '../../kernel/transitions.ts';
import type { Hold, HoldSum, Holds, HoldsOfKey } from '../holds.ts';

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
export async function listHolds(
  tx: Tx,
  ask: {
    readonly states: readonly HoldState[];
    readonly key: string | null;
    readonly after: string | null;
    readonly limit: number;
  },
): Promise<readonly Hold[]> {
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

/** See Holds.ofKey. */
export async function holdsOfKey(
  tx: Tx,
  { key, period }: { readonly key: string; readonly period: string },
): Promise<HoldsOfKey> {
  const { rows } = await tx.query<{ part: keyof HoldsOfKey; currency: string; count: number; amount: bigint }>(
    `select part, currency, count(*)::int4 as count, sum(amount)::int8 as amount
       from (select state as part, currency, amount from (${HOLD} and p.key = $1) own
              union all
             select 'settles', currency, amount from settlement.assigned_posting where period = $2 and kind = 'release') parts
      group by part, currency
      order by part, currency`,
    [key, period],
  );
  const sumOf = (part: keyof HoldsOfKey): HoldSum => {
    const mine = rows.filter((row) => row.part === part);
    return {
      count: mine.reduce((count, row) => count + row.count, 0),
      amounts: Object.fromEntries(mine.map((row) => [row.currency, row.amount])),
    };
  };
  return { held: sumOf('held'), released: sumOf('released'), settles: sumOf('settles') };
}

/** See Holds.balances. */
export async function holdBalances(tx: Tx): ReturnType<Holds['balances']> {
  const { rows } = await tx.query<{ currency: string; onHold: bigint; released: bigint }>(
    `select currency, sum(on_hold)::int8 as "onHold", sum(released)::int8 as released
       from (select currency, case when credit = 'hold' then amount else -amount end as on_hold, 0 as released
               from settlement.posting where 'hold' in (debit, credit)
              union all
             select currency, 0, amount from settlement.assigned_posting where kind = 'release') part
      group by currency
      order by currency`,
  );
  return Object.fromEntries(rows.map(({ currency, onHold, released }) => [currency, { onHold, released }]));
}

function holdOf({ period, actor, reason, at, ...hold }: HoldRow): Hold {
  return { ...hold, release: period === null ? null : { period, actor, reason, at } };
}
