import type { Client } from '@temporalio/client';
import { OnceperError } from '../kernel/error.ts';
import { appendAct } from '../store/audit-ledger.ts';
import { type Database, transaction } from '../store/database.ts';
import { withScheduleLock } from '../store/schedule-lock.ts';

/**
 * Pauses or resumes a job's schedule with a note that says who and why; the note stays over every later apply. Time spent
 * paused is never caught up by Temporal: `onceper periods` shows what it left out. Audited before Temporal is told: a record of an
 * act that Temporal refused harms nobody, an act without a record would. Throws OnceperError `no_schedule`.
 */
export async function pauseSchedule(
  db: Database,
  client: Client,
  ask: { readonly job: string; readonly to: 'pause' | 'resume'; readonly reason: string; readonly actor: string },
): Promise<{ readonly job: string; readonly state: 'paused' | 'active'; readonly note: string }> {
  const { job, to, reason, actor } = ask;
  const note = `${actor}: ${reason}`;
  return withScheduleLock(db, job, async () => {
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
    return { job, state: to === 'pause' ? 'paused' : 'active', note };
  });
}
