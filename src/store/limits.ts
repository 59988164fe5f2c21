import type { Tx } from '../kernel/sql.ts';
import { MOVES_MONEY } from './outbox-conditions.ts';

/** Limits of a job, as its rule states them; null sets none. */
export interface Limits {
  readonly runsInFlight: number | null;
  readonly backlogEffects: number | null;
  readonly backlogOldestSeconds: number | null;
}

/** A limit that is reached: why an admission must wait. */
export interface Reached {
  readonly code: 'too_many_in_flight' | 'backlog_count' | 'backlog_age';
  readonly reason: string;
}

/**
 * The first limit that is reached, or null. It must be called under the job's lock: counted without it, 30 of 30 parallel
 * opens passed a limit of 3.
 */
export async function reachedLimit(tx: Tx, job: string, limits: Limits): Promise<Reached | null> {
  const { runsInFlight, backlogEffects, backlogOldestSeconds } = limits;
  if (runsInFlight !== null && (await inFlight(tx, job)) >= runsInFlight) {
    return { code: 'too_many_in_flight', reason: `${runsInFlight} keys of ${job} are in flight, which is its limit` };
  }
  if (backlogEffects !== null && (await backlog(tx, job, backlogEffects)) >= backlogEffects) {
    return { code: 'backlog_count', reason: `${backlogEffects} effects of ${job} or more wait to be delivered` };
  }
  if (backlogOldestSeconds !== null && (await oldest(tx, job)) > backlogOldestSeconds) {
    return { code: 'backlog_age', reason: `effects of ${job} have been waiting for over ${backlogOldestSeconds} s` };
  }
  return null;
}

async function inFlight(tx: Tx, job: string): Promise<number> {
  const { rows } = await tx.query<{ n: number }>(
    `select count(*)::int4 as n from onceper.action where job = $1 and state in ('admitted', 'running', 'failed')`,
    [job],
  );
  return rows[0]?.n ?? 0;
}

/** Counts up to `enough` and no further: a backlog of a million costs no more than the limit. */
async function backlog(tx: Tx, job: string, enough: number): Promise<number> {
  const { rows } = await tx.query<{ n: number }>(
    `select count(*)::int4 as n
       from (select from onceper.action a
               join onceper.outbox o on o.key = a.key and o.state in ('pending', 'sending', 'unknown', 'pending_external')
              where a.delivering and a.job = $1 and ${MOVES_MONEY}
              limit $2) counted`,
    [job, enough],
  );
  return rows[0]?.n ?? 0;
}

/**
 * Effects become deliverable when their key closes, so the oldest key that still delivers money tells the age. Seconds. A
 * receiver of webhooks that is down must not hold up settlements.
 */
async function oldest(tx: Tx, job: string): Promise<number> {
  const { rows } = await tx.query<{ seconds: number }>(
    `select coalesce(extract(epoch from clock_timestamp() - min(done_at)), 0)::int4 as seconds
       from onceper.action a
      where a.delivering and a.job = $1
        and exists (select from onceper.outbox o
                     where o.key = a.key and o.state in ('pending', 'sending', 'unknown', 'pending_external') and ${MOVES_MONEY})`,
    [job],
  );
  return rows[0]?.seconds ?? 0;
}
