import type { Tx } from '../kernel/sql.ts';
import { ACCOUNTS_PAUSED } from './destinations.ts';
import { IS_ITS_TURN, MOVES_MONEY } from './outbox-conditions.ts';

/** Effects of one key that no relay will touch again by itself. */
export interface EffectsForAPerson {
  readonly key: string;
  readonly state: 'needs_attention' | 'dead';
  /** False of notices. */
  readonly movesMoney: boolean;
  readonly count: number;
}

/** Effects that wait for a person, by key and state. Walks the outbox: for an operator's question, never for a loop. */
export async function effectsForAPerson(tx: Tx): Promise<EffectsForAPerson[]> {
  const { rows } = await tx.query<EffectsForAPerson>(
    `select key, state, ${MOVES_MONEY} as "movesMoney", count(*)::int4 as count
       from onceper.outbox
      where state in ('needs_attention', 'dead')
      group by 1, 2, 3
      order by 1, 2, 3`,
  );
  return rows;
}

/**
 * How many deliverable effects have been due for longer than `olderMs`, those aside that wait for an earlier one or for a paused
 * counterparty: with a relay at work there are none.
 */
export async function countOverdueEffects(tx: Tx, olderMs: number): Promise<number> {
  const { rows } = await tx.query<{ count: number }>(
    `select count(*)::int4 as count
       from onceper.action a
       join onceper.outbox on outbox.key = a.key
      where a.delivering and outbox.state in ('pending', 'sending', 'unknown', 'pending_external')
        and outbox.due_at < clock_timestamp() - $1 * interval '1 millisecond' and ${IS_ITS_TURN}
        and not (${ACCOUNTS_PAUSED} and ${MOVES_MONEY})`,
    [olderMs],
  );
  return rows[0]?.count ?? 0;
}

/** Those of the effects whose latest answer had this code, in the order of their numbers. */
export async function numbersWithCode(tx: Tx, numbers: readonly string[], code: string): Promise<string[]> {
  const { rows } = await tx.query<{ number: string }>(
    `select number from onceper.outbox where number = any ($1::text[]) and code = $2 order by number`,
    [numbers, code],
  );
  return rows.map((row) => row.number);
}
