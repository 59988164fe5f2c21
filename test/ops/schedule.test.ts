import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRegistry } from '../../src/jobs/registry.ts';
import { parseRule } from '../../src/jobs/rule.ts';
import { applyJobSchedule, applySchedule, listSchedules } from '../../src/ops/schedule.ts';
import type { SchedulePlan } from '../../src/ops/schedule-plan.ts';
import type { Database } from '../../src/store/database.ts';
import { isOneOff } from '../../src/store/rules.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { testPool } from '../support/ledger.ts';
import { createTestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob, tinyRule } from '../support/tiny-job.ts';

const SHANGHAI = { zone: 'Asia/Shanghai', calendar: { dayOfMonth: 1, hour: 2, minute: 0 } };
const registry = createRegistry([createTinyJob(1)]);
let database: TestDatabase;
let db: Database;
let client: Client;

beforeAll(async () => {
  database = await createTestDatabase();
  db = testPool(database.url, 4);
  await installTinyJob(db, SHANGHAI);
  const { address, namespace } = await createTestNamespace();
  client = new Client({ connection: await Connection.connect({ address }), namespace });
});

afterAll(async () => {
  await client.connection.close();
  await db.close();
  await database.drop();
});

/** A plan of a schedule of its own, by the rule of the tiny job with some changes. */
function planOf(job: string, changes: Readonly<Record<string, unknown>> = {}): SchedulePlan {
  return {
    job,
    rule: parseRule({ ...tinyRule({ ...SHANGHAI, ...changes }), job }, job),
    taskQueue: 'onceper',
    now: '2026-12-03T00:00:00Z',
  };
}

const describeOf = (job: string) => client.schedule.getHandle(job).describe();

describe('schedule apply', () => {
  test('sets every field that the code owns, and the server gives them back', async () => {
    const applied = await applySchedule(client, planOf('every-field'));
    expect(applied).toMatchObject({ kind: 'created', changed: [], drift: [], paused: false, note: null });
    const found = await describeOf('every-field');
    expect(found.spec.timezone).toBe('Asia/Shanghai');
    expect(found.policies).toEqual({ overlap: 'ALLOW_ALL', catchupWindow: 400 * 86_400_000, pauseOnFailure: false });
    expect(found.spec.jitter ?? 0).toBe(0);
    expect(found.action).toMatchObject({
      type: 'startWorkflow',
      workflowType: 'tick',
      workflowId: 'every-field',
      taskQueue: 'onceper',
      args: [{ job: 'every-field' }],
    });
    expect(found.info.nextActionTimes.map((at) => at.toISOString())).toEqual(
      expect.arrayContaining([expect.stringMatching(/^20\d\d-\d\d-(28|29|30|31)T18:00:00\.000Z$/)]),
    );
  });

  test('starts runs under the job’s id and the nominal time in UTC', async () => {
    await applySchedule(client, planOf('named-runs'));
    const at = new Date('2026-09-30T18:00:00Z');
    await client.schedule.getHandle('named-runs').backfill({ start: at, end: at, overlap: 'ALLOW_ALL' });
    await expect
      .poll(async () => (await describeOf('named-runs')).info.recentActions.map((a) => a.action.workflow.workflowId), {
        timeout: 10_000,
      })
      .toEqual(['named-runs-2026-09-30T18:00:00Z']);
  });

  test.each([
    ['a month and a day', { month: 4, dayOfMonth: 6, hour: 0, minute: 30 }],
    ['a weekday', { dayOfWeek: 7, hour: 23, minute: 59 }],
    ['every hour field at its end', { dayOfMonth: 31, hour: 0, minute: 0 }],
    ['every hour', { minute: 5 }],
  ])('reads back %s without drift', async (name, calendar) => {
    const plan = planOf(`calendar-${name.replaceAll(' ', '-')}`, { calendar });
    expect((await applySchedule(client, plan)).drift).toEqual([]);
  });

  test('leaves a schedule alone that is right already', async () => {
    const plan = planOf('left-alone');
    await applySchedule(client, plan);
    const before = await describeOf('left-alone');
    expect(await applySchedule(client, plan)).toMatchObject({ kind: 'unchanged', drift: [] });
    expect((await describeOf('left-alone')).info.lastUpdatedAt).toEqual(before.info.lastUpdatedAt);
  });

  test('carries a pause, its note and the remaining actions over a change of zone', async () => {
    await applySchedule(client, planOf('paused'));
    const handle = client.schedule.getHandle('paused');
    await handle.pause('until the bank answers');
    await handle.update(({ state, ...found }) => ({ ...found, state: { ...state, remainingActions: 7 } }));
    const applied = await applySchedule(client, planOf('paused', { zone: 'Europe/London' }));
    expect(applied).toMatchObject({ kind: 'updated', drift: [], paused: true, note: 'until the bank answers' });
    expect(applied.changed).toEqual(['zone is Asia/Shanghai, and should be Europe/London']);
    expect((await describeOf('paused')).state).toEqual({
      paused: true,
      note: 'until the bank answers',
      remainingActions: 7,
    });
  });

  test('names what a hand changed, and puts it right', async () => {
    await applySchedule(client, planOf('drifted'));
    await client.schedule.getHandle('drifted').update((found) => ({
      ...found,
      spec: { ...found.spec, jitter: '5 seconds', calendars: [{ hour: 3, dayOfMonth: 2 }] },
      policies: { overlap: 'SKIP', catchupWindow: '1 minute', pauseOnFailure: true },
      action: { ...found.action, taskQueue: 'another' },
    }));
    const applied = await applySchedule(client, planOf('drifted'));
    expect(applied.changed).toEqual([
      'calendar is dayOfMonth 2, hour 3, minute 0, second 0, and should be dayOfMonth 1, hour 2, minute 0, second 0',
      'jitter is 5000 ms, and should be none',
      'overlap is SKIP, and should be ALLOW_ALL',
      expect.stringContaining('catch-up window is'),
      'pause on failure is on, and should be off',
      'task queue is another, and should be onceper',
    ]);
    expect(applied.drift).toEqual([]);
  });

  test('adds a one-off instant, stored first, and the next apply takes it out again', async () => {
    const at = '2099-03-28T17:30:15Z';
    const ask = { registry, job: 'tiny', taskQueue: 'onceper', actor: 'os:ann' };
    const added = await applyJobSchedule(db, client, {
      ...ask,
      oneOff: { at, reason: 'a rehearsal', actor: 'tester' },
    });
    expect(added.drift).toEqual([]);
    expect(await isOneOff(db, 'tiny', at)).toBe(true);
    const calendars = (await describeOf('tiny')).spec.calendars ?? [];
    expect(calendars).toHaveLength(2);
    expect(calendars[1]).toMatchObject({
      year: [{ start: 2099, end: 2099, step: 1 }],
      month: [{ start: 'MARCH', end: 'MARCH', step: 1 }],
      dayOfMonth: [{ start: 29, end: 29, step: 1 }],
      hour: [{ start: 1, end: 1, step: 1 }],
      minute: [{ start: 30, end: 30, step: 1 }],
      second: [{ start: 15, end: 15, step: 1 }],
    });
    const removed = await applyJobSchedule(db, client, ask);
    expect(removed).toMatchObject({ kind: 'updated', drift: [] });
    expect((await describeOf('tiny')).spec.calendars).toHaveLength(1);
    expect(await isOneOff(db, 'tiny', at)).toBe(true);
  });

  test('refuses a one-off instant between two seconds before anything is stored', async () => {
    const at = '2099-03-28T17:30:15.5Z';
    const ask = {
      registry,
      job: 'tiny',
      taskQueue: 'onceper',
      actor: 'os:ann',
      oneOff: { at, reason: 'x', actor: 'tester' },
    };
    await expect(applyJobSchedule(db, client, ask)).rejects.toMatchObject({ code: 'malformed_instant' });
    expect(await isOneOff(db, 'tiny', at)).toBe(false);
  });

  test('by two at once makes one schedule', async () => {
    const ask = { registry, job: 'tiny', taskQueue: 'onceper', actor: 'os:ann' };
    await client.schedule.getHandle('tiny').delete();
    const applied = await Promise.all([1, 2, 3].map(() => applyJobSchedule(db, client, ask)));
    expect(applied.map(({ kind }) => kind).sort()).toEqual(['created', 'unchanged', 'unchanged']);
  });
});

describe('schedule list', () => {
  test('says that a job has no schedule, or shows its calendar, pause and drift', async () => {
    const ask = { registry, jobs: ['tiny'], taskQueue: 'onceper' };
    await applyJobSchedule(db, client, { registry, job: 'tiny', taskQueue: 'onceper', actor: 'os:ann' });
    const [active] = await listSchedules(db, client, ask);
    expect(active).toMatchObject({
      job: 'tiny',
      state: 'active',
      zone: 'Asia/Shanghai',
      calendar: 'dayOfMonth 1, hour 2, minute 0, second 0',
      drift: [],
    });
    await client.schedule.getHandle('tiny').pause('audit');
    const [drifted] = await listSchedules(db, client, { ...ask, taskQueue: 'elsewhere' });
    expect(drifted).toMatchObject({
      state: 'paused',
      note: 'audit',
      drift: ['task queue is onceper, and should be elsewhere'],
    });
    await client.schedule.getHandle('tiny').delete();
    expect(await listSchedules(db, client, ask)).toMatchObject([{ job: 'tiny', state: 'missing', drift: [] }]);
  });
});
