import type { Tx } from '../kernel/sql.ts';

/**
 * Ends the live lease of one grant; false where the key was granted again, or its lease has ended. A plain update of no key
 * column: it waits for no slice, and the next grant, a transaction of its own, waits for those in flight.
 */
export async function revokeGrant(tx: Tx, grant: { readonly key: string; readonly fence: bigint }): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.action set lease_until = clock_timestamp()
      where key = $1 and fence = $2 and state = 'running' and lease_until > clock_timestamp()`,
    [grant.key, grant.fence],
  );
  return rowCount === 1;
}
