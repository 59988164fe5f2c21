import type { Instant, Tx } from '../kernel/sql.ts';

/** The newest run of a key that has no action: why the period waits. */
export interface WaitingRun {
  readonly key: string;
  readonly startId: string;
  readonly decision: 'held' | 'deferred';
  readonly code: string;
  readonly reason: string;
  readonly openedAt: Instant;
}

/** Of each key of the job without an action, its newest held or deferred run. */
export async function waitingRunsOfJob(tx: Tx, job: string): Promise<WaitingRun[]> {
  const { rows } = await tx.query<WaitingRun>(
    `select distinct on (r.key) r.key, r.start_id as "startId", r.decision, r.code, r.reason, r.opened_at as "openedAt"
       from onceper.run r
      where r.job_id = $1 and r.decision in ('held', 'deferred')
        and not exists (select from onceper.action a where a.key = r.key)
      order by r.key, r.opened_at desc`,
    [job],
  );
  return rows;
}
