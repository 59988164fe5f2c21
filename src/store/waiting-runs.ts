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

/** Runs of a job that wait because nobody who was asked knows the job, or its rule: how many, and the first of them. */
export interface StrandedRuns {
  readonly job: string;
  readonly code: string;
  readonly count: number;
  readonly since: Instant;
}

/** Runs that wait without a key, by job and code; at most `limit` of those. */
export async function strandedRuns(tx: Tx, limit: number): Promise<StrandedRuns[]> {
  const { rows } = await tx.query<StrandedRuns>(
    `select job_id as job, code, count(*)::int4 as count, min(opened_at) as since
       from onceper.run where decision = 'deferred' and key is null
      group by job_id, code order by job_id, code limit $1`,
    [limit],
  );
  return rows;
}

/** A deferred run that its own tick, lost with Temporal's memory, does not ask for any more. */
export interface UnaskedRun {
  readonly run: string;
  readonly job: string;
  /** Null where it waits for somebody who knows its job; `period` too. */
  readonly key: string | null;
  readonly period: string | null;
  readonly scheduledAt: Instant;
}

/** Deferred runs of `jobs` for which nobody has asked for `unaskedMs`, by the database's clock; the longest first. */
export async function unaskedRuns(
  tx: Tx,
  ask: { readonly jobs: readonly string[]; readonly unaskedMs: number; readonly limit: number },
): Promise<UnaskedRun[]> {
  const { rows } = await tx.query<UnaskedRun>(
    `select start_id as run, job_id as job, key, period, scheduled_at as "scheduledAt" from onceper.run
      where decision = 'deferred' and job_id = any ($1::text[])
        and decided_at < clock_timestamp() - $2 * interval '1 millisecond'
      order by decided_at limit $3`,
    [ask.jobs, ask.unaskedMs, ask.limit],
  );
  return rows;
}

/** Of each key of the job without an action, its newest held or deferred run. */
export async function waitingRunsOfJob(tx: Tx, job: string): Promise<WaitingRun[]> {
  const { rows } = await tx.query<WaitingRun>(
    `select distinct on (r.key) r.key, r.start_id as "startId", r.decision, r.code, r.reason, r.opened_at as "openedAt"
       from onceper.run r
      where r.job_id = $1 and r.key is not null and r.decision in ('held', 'deferred')
        and not exists (select from onceper.action a where a.key = r.key)
      order by r.key, r.opened_at desc`,
    [job],
  );
  return rows;
}
