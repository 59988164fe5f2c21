import type { Tx } from '../kernel/sql.ts';

/**
 * Keys marked as delivering in which no effect needs the relay any more, found without a lock. "Needs" is the four
 * unfinished states: `needs_attention` and `dead` wait for a person, who sets `delivering` again when asking for a retry.
 */
export async function keysWithoutWork(tx: Tx, jobs: readonly string[]): Promise<string[]> {
  const { rows } = await tx.query<{ key: string }>(
    `select a.key from onceper.action a
      where a.delivering and a.job = any ($1::text[])
        and not exists (select from onceper.outbox o
                         where o.key = a.key and o.state in ('pending', 'sending', 'unknown', 'pending_external'))`,
    [jobs],
  );
  return rows.map((row) => row.key);
}

/**
 * Clears `delivering` of a key that has no unfinished effect; true when it did. Call it in a transaction: first the action
 * row is locked, then a second statement looks, so that it sees what whoever held the lock before us has added. In one
 * statement the look would be as old as the wait. A row that is locked now is left for the next sweep.
 */
export async function clearDelivering(tx: Tx, key: string): Promise<boolean> {
  return (await lockDelivering(tx, key)) && (await clearIfFinished(tx, key));
}

async function lockDelivering(tx: Tx, key: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from onceper.action where key = $1 and delivering for no key update skip locked`,
    [key],
  );
  return rowCount === 1;
}

async function clearIfFinished(tx: Tx, key: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.action a set delivering = false
      where a.key = $1 and a.delivering
        and not exists (select from onceper.outbox o
                         where o.key = a.key and o.state in ('pending', 'sending', 'unknown', 'pending_external'))`,
    [key],
  );
  return rowCount === 1;
}
