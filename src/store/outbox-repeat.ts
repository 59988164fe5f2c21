import type { Tx } from '../kernel/sql.ts';
import type { TakenEffect } from './outbox-take.ts';

/**
 * Makes an unknown notice `sending` again without a look-up, and renews the lease; committed before the first byte leaves. Its
 * receiver recognises the number for good. The `where` refuses money, which is looked up first. The take has counted a look-up
 * that is not made, so it is taken back. Null when the fence was lost or delivery froze.
 */
export async function beginRepeat(
  tx: Tx,
  effect: Pick<TakenEffect, 'number' | 'fence'>,
  leaseMs: number,
): Promise<{ readonly fence: bigint; readonly attempts: number } | null> {
  const { rows } = await tx.query<{ fence: bigint; attempts: number }>(
    `update onceper.outbox
        set state = 'sending', attempts = attempts + 1, lookups = lookups - 1, fence = fence + 1,
            last_sent_at = clock_timestamp(), due_at = clock_timestamp() + $3 * interval '1 millisecond'
      where number = $1 and fence = $2 and state = 'unknown' and starts_with(destination, 'webhook:')
        and not exists (select from onceper.epoch where frozen_at is not null)
     returning fence, attempts`,
    [effect.number, effect.fence, leaseMs],
  );
  return rows[0] ?? null;
}
