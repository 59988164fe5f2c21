import type { Client } from '@temporalio/client';
import { occasionsOf } from '../jobs/occasion.ts';
import type { Registry } from '../jobs/registry.ts';
import type { JobRule } from '../jobs/rule.ts';
import { OnceperError } from '../kernel/error.ts';
import { compareInstants } from '../kernel/instant.ts';
import { appendAct } from '../store/audit-ledger.ts';
import { clockOf, type Database, transaction } from '../store/database.ts';
import { withScheduleLock } from '../store/schedule-lock.ts';
import { appliedSchedule } from '../store/schedules.ts';
import { expectedPeriods } from './periods.ts';

/** What a pause or a resume did; `missed` are the periods that came due meanwhile and were started by nothing. */
export interface Paused {
  readonly job: string;
  readonly state: 'paused' | 'active';
  readonly note: string;
  readonly missed: readonly string[];
  /** Which of them the rule makes up for. */
  readonly makesUpFor: JobRule['missedFirings'] | null;
}

interface Ask {
  readonly registry: Registry;
  readonly job: string;
  readonly to: 'pause' | 'resume';
  readonly reason: string;
  readonly actor: string;
  readonly taskQueue: string;
}

/**
 * Pauses or resumes a job's schedule with a note that says who and why; the note stays over every later apply. Temporal never catches
 * up what fell due while it was paused: on resuming, the check of expected periods does, at once, as the rule says of missed
 * firings. Audited before Temporal is told: a record of an act that Temporal refused harms nobody, an act without a record would.
 * Throws OnceperError `no_schedule`.
 */
export async function pauseSchedule(db: Database, client: Client, ask: Ask): Promise<Paused> {
  const { job, to, reason, actor } = ask;
  const note = `${actor}: ${reason}`;
  await withScheduleLock(db, job, async () => {
    const handle = client.schedule.getHandle(job);
    try {
      await handle.describe();
      await transaction(db, { lockTimeout: 10_000 }, (tx) => appendAct(tx, ask, { verb: to, job }));
      await (to === 'pause' ? handle.pause(note) : handle.unpause(note));
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'ScheduleNotFoundError') throw error;
      throw new OnceperError({
        code: 'no_schedule',
        message: `job ${job} has no schedule in Temporal`,
        remedy: `npx onceper schedule apply ${job}`,
        at: job,
      });
    }
  });
  if (to === 'pause') return { job, state: 'paused', note, missed: [], makesUpFor: null };
  const { missed, rule } = await missedPeriods(db, ask);
  await checkNow(client, ask);
  return { job, state: 'active', note, missed, makesUpFor: rule.missedFirings };
}

/** The periods that came due since the job has a schedule, and that nothing has started. */
async function missedPeriods(db: Database, { registry, job }: Ask): Promise<{ missed: string[]; rule: JobRule }> {
  const { rule, periods } = await expectedPeriods(db, registry, { job });
  const [applied, now] = [await appliedSchedule(db, job), await clockOf(db)];
  const missing = periods.filter(({ state }) => state === 'missing').map(({ period }) => period);
  const missed = missing.filter((period) => {
    const [occasion] = occasionsOf(rule, period, period);
    if (occasion === undefined || applied === null) return false;
    return compareInstants(occasion.at, applied.since) >= 0 && compareInstants(occasion.at, now) <= 0;
  });
  return { missed, rule };
}

/** Starts a check of the expected periods now, and not in five minutes; one that runs already is as good. */
async function checkNow(client: Client, { job, taskQueue }: Ask): Promise<void> {
  try {
    await client.workflow.start('expect', {
      workflowId: `onceper-expect-resumed-${job}`,
      taskQueue,
      staticSummary: `the schedule of ${job} was resumed`,
    });
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'WorkflowExecutionAlreadyStartedError') throw error;
  }
}
