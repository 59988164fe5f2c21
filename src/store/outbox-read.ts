import type { Tx } from '../kernel/sql.ts';
import type { EffectState } from '../kernel/transitions.ts';
import { MOVES_MONEY } from './outbox-conditions.ts';

/** An effect as it is shown: money as decimal text of minor units, null where the body is no transfer. */
export interface ShownEffect {
  readonly number: string;
  readonly subject: string;
  readonly currency: string | null;
  readonly amount: string | null;
  readonly state: EffectState;
  readonly attempts: number;
  readonly counterpartyId: string | null;
}

/** An effect's place in its life, read again by whoever lost it. */
export interface EffectStanding {
  readonly number: string;
  readonly state: EffectState;
  readonly fence: bigint;
  readonly counterpartyId: string | null;
}

/**
 * A key's effects as a range of the primary key: their numbers begin with `key:`, and `;` follows `:`. The range holds the
 * effects of the key's adjustments too, so the key is asked for beside it.
 */
const OF_KEY = `key = $1 and number > $1 || ':' and number < $1 || ';'`;

/** How many effects are in each state; states without one are absent. */
export type EffectCounts = Partial<Record<EffectState, number>>;

/** A key's effects that move money, by state: whether it is paid is read from them alone. */
export async function effectCounts(tx: Tx, key: string): Promise<EffectCounts> {
  return countsWhere(tx, key, MOVES_MONEY);
}

/** What a key tells to receivers of webhooks, by state. */
export async function noticeCounts(tx: Tx, key: string): Promise<EffectCounts> {
  return countsWhere(tx, key, `not ${MOVES_MONEY}`);
}

async function countsWhere(tx: Tx, key: string, condition: string): Promise<EffectCounts> {
  const { rows } = await tx.query<{ state: EffectState; count: number }>(
    `select state, count(*)::int4 as count from onceper.outbox where ${OF_KEY} and ${condition} group by state order by state`,
    [key],
  );
  return Object.fromEntries(rows.map((row) => [row.state, row.count]));
}

/** Whether the relay has effects of a key in hand that move money; stops at the first. */
export async function hasMoneyToDeliver(tx: Tx, key: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from onceper.outbox
      where key = $1 and state in ('pending', 'sending', 'unknown', 'pending_external') and ${MOVES_MONEY} limit 1`,
    [key],
  );
  return rowCount === 1;
}

/** One page of a key's effects in the order of their numbers, at most `limit`; `next` is the `after` of the next page. */
export async function effectPage(
  tx: Tx,
  key: string,
  after: string | null,
  limit: number,
): Promise<{ readonly effects: readonly ShownEffect[]; readonly next: string | null }> {
  const { rows } = await tx.query<Omit<ShownEffect, 'currency' | 'amount'> & { body: string }>(
    `select number, subject, body, state, attempts, counterparty_id as "counterpartyId"
       from onceper.outbox where ${OF_KEY} and number > $2 order by number limit $3`,
    [key, after ?? '', limit + 1],
  );
  const effects = rows.slice(0, limit).map(({ body, number, subject, state, attempts, counterpartyId }) => {
    return { number, subject, ...moneyOf(body), state, attempts, counterpartyId };
  });
  return { effects, next: rows.length > limit ? (effects.at(-1)?.number ?? null) : null };
}

/** Where effects stand now; a number that does not exist is absent. */
export async function effectStandings(tx: Tx, numbers: readonly string[]): Promise<EffectStanding[]> {
  const { rows } = await tx.query<EffectStanding>(
    `select number, state, fence, counterparty_id as "counterpartyId"
       from onceper.outbox where number = any ($1::text[]) order by number`,
    [numbers],
  );
  return rows;
}

/** A body's money. Read here and not in SQL: one body that is no JSON would fail the whole page. */
export function moneyOf(body: string): Pick<ShownEffect, 'currency' | 'amount'> {
  const { amount, currency } = fieldsOf(body);
  return {
    amount: typeof amount === 'string' ? amount : null,
    currency: typeof currency === 'string' ? currency : null,
  };
}

function fieldsOf(body: string): { readonly amount?: unknown; readonly currency?: unknown } {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === 'object' && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}
