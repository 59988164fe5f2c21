import type { Client } from '@temporalio/client';
import type { Tx } from '../kernel/sql.ts';
import { announcedIn } from '../kernel/worker-identity.ts';
import { scheduledJobs } from '../store/schedules.ts';
import { strandedRuns } from '../store/waiting-runs.ts';
import { between } from './both-clocks.ts';
import { type Check, fail, ok } from './check.ts';
import { POLL_WITHIN_MS, pollersOf } from './run.ts';

const MOST = 20;

/**
 * Whether the workers that poll know every job that has a schedule. A worker of an earlier release announces nothing, so beside one
 * the comparison says nothing.
 */
export async function checkAnnounced(tx: Tx, client: Client, taskQueue: string): Promise<Check[]> {
  const now = new Date().toISOString();
  const polling = (await pollersOf(client, taskQueue)).filter(({ at }) => between(at, now) < POLL_WITHIN_MS);
  const announced = polling.map(({ identity }) => announcedIn(identity));
  if (polling.length === 0 || announced.includes(null)) return [];
  const workers = announced.filter((worker) => worker !== null);
  const scheduled = await scheduledJobs(tx);
  const check = 'jobs of workers';
  const unknown = scheduled.filter((job) => !workers.some(({ jobs }) => jobs.includes(job)));
  const releases = [...new Set(workers.map(({ release }) => release))].join(', ');
  if (unknown.length > 0) {
    const who = `no worker that polls (release ${releases}) knows ${unknown.join(', ')}, which has a schedule`;
    return [fail(check, who, 'start a worker of a release that has the job; its runs wait meanwhile')];
  }
  const partly = scheduled.filter((job) => !workers.every(({ jobs }) => jobs.includes(job)));
  const all = `${workers.length} that poll, of release ${releases}, know every job that has a schedule`;
  return [ok(check, partly.length === 0 ? all : `${all}; not each of them ${partly.join(', ')}`)];
}

/** Runs that wait because nobody who was asked knows their job or its rule. */
export async function checkStranded(tx: Tx): Promise<Check[]> {
  return (await strandedRuns(tx, MOST)).map(({ job, code, count, since }) => {
    const runs = count === 1 ? '1 run waits' : `${count} runs wait`;
    const noRule = code === 'no_rule';
    return fail(
      `runs of ${job}`,
      `${runs} since ${since}: ${noRule ? 'no rule is loaded' : 'no worker that was asked knows the job'}`,
      noRule ? 'npx onceper migrate --rules FILE' : 'start a worker of a release that has the job',
    );
  });
}
