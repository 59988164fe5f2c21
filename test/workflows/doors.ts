import { afterAll, beforeAll, expect } from 'vitest';
import type { Job } from '../../src/jobs/job.ts';
import { nominalTimeOf } from '../../src/jobs/occasion.ts';
import { parseRule, periodCalendar } from '../../src/jobs/rule.ts';
import { periodBounds } from '../../src/kernel/period.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { as, documentOf, typed } from '../app/command-line.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob, tinyRule } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';

/** A recent period of each kind that used to stop its job, with a first period close to it, so that few others are missing. */
export const DOOR_SAMPLES = {
  sydney: { period: '2026-09', zone: 'Australia/Sydney', calendar: { dayOfMonth: 4, hour: 2, minute: 30 } },
  skipping: {
    period: '2026-09',
    zone: 'Australia/Sydney',
    calendar: { dayOfMonth: 4, hour: 2, minute: 30, gap: 'skip' },
  },
  'lord-howe': { period: '2026-09', zone: 'Australia/Lord_Howe', calendar: { dayOfMonth: 4, hour: 2, minute: 15 } },
  santiago: { period: '2026-08', zone: 'America/Santiago', calendar: { dayOfMonth: 6, hour: 0, minute: 30 } },
  nuuk: { period: '2026-02', zone: 'America/Nuuk', calendar: { dayOfMonth: 28, hour: 23, minute: 30 } },
  'new-york': { period: '2026-10', zone: 'America/New_York', calendar: { dayOfMonth: 1, hour: 1, minute: 30 } },
  'the-31st': { period: '2026-10', zone: 'Asia/Shanghai', calendar: { dayOfMonth: 31, hour: 2, minute: 0 } },
  'last-business-day': {
    period: '2026-10',
    zone: 'Europe/London',
    calendar: {
      dayOfMonth: -1,
      hour: 18,
      minute: 0,
      businessDays: { holidays: ['2026-11-30'], otherwise: 'previous' },
    },
  },
} as const;
const DOORS = ['name', 'backfill', 'catch-up', 'check', 'resume'] as const;

/** The bounds that each job was asked to make rows for, by job and period. */
const bounds = new Map<string, readonly [string, string]>();
let jobs: readonly Job[] = [];
const jobOf = (id: string): Job => ({
  ...createTinyJob(1, { id }),
  preparePeriods(_, periods) {
    for (const { period, starts, ends } of periods) bounds.set(`${id}:${period}`, [starts, ends]);
    return Promise.resolve();
  },
});
let database: TestDatabase;
let db: Database;
let namespace: TestNamespace;
let worker: TestWorker;

type Sample = keyof typeof DOOR_SAMPLES;

/** A worker that knows a job for each sample and door, with a rule whose first period is the sample's; for tests of the file that calls it. */
export function useDoors(samples: readonly Sample[]): void {
  beforeAll(async () => {
    [database, namespace] = await Promise.all([createTestDatabase(), createTestNamespace()]);
    db = openDatabase({ url: database.url, name: 'test', max: 6 });
    jobs = samples.flatMap((sample) => DOORS.map((door) => jobOf(`${sample}-${door}`)));
    for (const sample of samples) {
      const { period: first, ...changes } = DOOR_SAMPLES[sample];
      for (const door of DOORS) await installTinyJob(db, { job: `${sample}-${door}`, first, ...changes });
    }
    worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs });
  }, 120_000);
  afterAll(async () => {
    await worker.stop();
    await db.close();
    await database.drop();
  });
}

const environment = () => ({
  DATABASE_URL: database.url,
  TEMPORAL_ADDRESS: namespace.address,
  TEMPORAL_NAMESPACE: namespace.namespace,
});
const ann = (...line: string[]) => typed(line, environment(), { jobs });
const bob = async (...line: string[]) =>
  typed(line, { ...environment(), ...(await as('bob', 'operator', 'approver')) }, { jobs });

/** A schedule that is there since before the period was due. */
async function applied(job: string): Promise<void> {
  expect(await ann('schedule', 'apply', job)).toMatchObject({ code: 0 });
  await db.query(`update onceper.schedule set since = '2020-01-01T00:00:00Z' where job = $1`, [job]);
}

const check = () =>
  worker.client.workflow.execute('expect', { workflowId: `check-${Math.random()}`, taskQueue: 'onceper', args: [] });

const openBy: Readonly<
  Record<(typeof DOORS)[number], (job: string, period: string, nominal: string) => Promise<void>>
> = {
  async name(job, period) {
    expect(await ann('run', job, '--period', period, '--wait', '--json')).toMatchObject({ code: 0 });
  },
  async backfill(job, period) {
    const range = ['--from', period, '--to', period, '--only', 'missing', '--reason', 'it was missed'];
    const asked = documentOf<{ approval: { id: string; digest: string } }>(
      await ann('backfill', 'request', job, ...range, '--json'),
    );
    const { id, digest } = asked.approval;
    expect(await bob('approvals', 'approve', id, '--digest', digest)).toMatchObject({ code: 0 });
  },
  async 'catch-up'(job, period, nominal) {
    await applied(job);
    const at = new Date(nominal);
    await worker.client.schedule.getHandle(job).backfill({ start: at, end: at, overlap: 'ALLOW_ALL' });
    // Where the rule leaves gaps to the check, the schedule has no instant to catch up.
    if (job.startsWith('skipping')) await check();
    expect(period).not.toBe('');
  },
  async check(job) {
    await applied(job);
    await check();
  },
  async resume(job, period) {
    await applied(job);
    expect(await ann('schedule', 'pause', job, '--reason', 'the bank asked')).toMatchObject({ code: 0 });
    await check();
    const { rows } = await db.query(`select from onceper.run where key = $1`, [`${job}:${period}`]);
    expect(rows).toEqual([]);
    const resumed = documentOf<{ missed: string[] }>(
      await ann('schedule', 'resume', job, '--reason', 'it may go on', '--json'),
    );
    expect(resumed.missed).toContain(period);
  },
};

async function actionOf(key: string): Promise<{ state: string; runs: string } | undefined> {
  const { rows } = await db.query<{ state: string; runs: string }>(
    `select a.state, (select count(*)::text from onceper.run r where r.key = a.key and r.decision = 'admitted') as runs
       from onceper.action a where a.key = $1`,
    [key],
  );
  return rows[0];
}

/**
 * Opens a sample's period by each door, in a job of its own each, and by name again: it is settled once under the key that its name
 * gives, with the bounds that its calendar gives.
 */
export async function closeByEveryDoor(sample: Sample): Promise<void> {
  const { period, ...changes } = DOOR_SAMPLES[sample];
  const rule = parseRule({ ...tinyRule(changes), first: period }, sample);
  const { starts, ends } = periodBounds(period, periodCalendar(rule));
  for (const door of DOORS) {
    const job = `${sample}-${door}`;
    const key = `${job}:${period}`;
    await openBy[door](job, period, nominalTimeOf(rule, period));
    await waitFor(async () => (await actionOf(key))?.state === 'done', {
      what: `${key} to be done`,
      timeoutMs: 40_000,
    });
    expect(await actionOf(key)).toEqual({ state: 'done', runs: '1' });
    expect([door, bounds.get(key)]).toEqual([door, [starts, ends]]);
    const again = documentOf<object>(await ann('run', job, '--period', period, '--wait', '--json'));
    expect(again).toMatchObject({ key, decision: 'duplicate' });
  }
}
