import type { Instant, Tx } from '../kernel/sql.ts';
import { appendAudit } from './audit.ts';

/** What was applied as a job's schedule: a digest of its times, and since when the job has one. */
export interface AppliedSchedule {
  readonly since: Instant;
  readonly plan: string;
}

/** The schedule that was applied for a job, or null where none was. */
export async function appliedSchedule(tx: Tx, job: string): Promise<AppliedSchedule | null> {
  const { rows } = await tx.query<AppliedSchedule>(`select since, plan from onceper.schedule where job = $1`, [job]);
  return rows[0] ?? null;
}

/** Writes down what is applied as a job's schedule, audited; the same again changes nothing. `since` is the first time's. */
export async function recordSchedule(
  tx: Tx,
  applied: { readonly job: string; readonly plan: string; readonly actor: string },
): Promise<void> {
  const { job, plan, actor } = applied;
  const { rowCount } = await tx.query(
    `insert into onceper.schedule as s (job, plan, applied_by) values ($1, $2, $3)
         on conflict on constraint schedule_pk
         do update set plan = excluded.plan, applied_by = excluded.applied_by, applied_at = clock_timestamp()
         where s.plan <> excluded.plan`,
    [job, plan, actor],
  );
  if (rowCount === 0) return;
  await appendAudit(tx, { actor, verb: 'apply-schedule', job, key: null, run: null, detail: { plan } });
}

/** The stored one-off instants of a job that are still to come, by the database's clock; the soonest first. */
export async function oneOffsToCome(tx: Tx, job: string): Promise<Instant[]> {
  const { rows } = await tx.query<{ at: Instant }>(
    `select at from onceper.one_off where job = $1 and at > clock_timestamp() order by at`,
    [job],
  );
  return rows.map(({ at }) => at);
}

/** The jobs whose schedule was applied, in the order of their names. */
export async function scheduledJobs(tx: Tx): Promise<string[]> {
  const { rows } = await tx.query<{ job: string }>(`select job from onceper.schedule order by job`);
  return rows.map(({ job }) => job);
}
