import type { Instant, Tx } from '../kernel/sql.ts';
import { MOVES_MONEY } from './outbox-conditions.ts';

/** What is still to be told to one destination. */
export interface NoticesOwed {
  readonly destination: string;
  readonly count: number;
  /** The first try of the one that has been tried longest; null where none was tried. */
  readonly since: Instant | null;
  /** How long ago that was, milliseconds. */
  readonly ageMs: number | null;
  /** The code of its latest try. */
  readonly code: string | null;
}

/** What is still to be told, by destination. */
export async function noticesOwed(tx: Tx): Promise<NoticesOwed[]> {
  const { rows } = await tx.query<NoticesOwed>(
    `select o.destination, count(*)::int4 as count, min(o.first_sent_at) as since,
            (extract(epoch from clock_timestamp() - min(o.first_sent_at)) * 1000)::float8 as "ageMs",
            (array_agg(o.code order by o.first_sent_at nulls last))[1] as code
       from onceper.action a
       join onceper.outbox o on o.key = a.key and o.state in ('pending', 'sending', 'unknown', 'pending_external')
      where a.delivering and not ${MOVES_MONEY}
      group by o.destination
      order by o.destination`,
  );
  return rows;
}
