import { ScheduleOverlapPolicy, WorkflowExecutionAlreadyStartedError, WorkflowFailedError } from '@temporalio/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { attemptsOfKey } from '../../src/store/attempts.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { runsOfKey } from '../../src/store/runs.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';

let database: TestDatabase;
let db: Database;
let namespace: TestNamespace;
let worker: TestWorker | null = null;

beforeEach(async () => {
  [database, namespace] = await Promise.all([createTestDatabase(), createTestNamespace()]);
  db = openDatabase({ url: database.url, name: 'test', max: 5 });
  await installTinyJob(db, { leaseSeconds: 2 });
});
afterEach(async () => {
  await worker?.stop();
  worker = null;
  await db.close();
  await database.drop();
});

const SEPTEMBER = { scheduledAt: '2025-10-01T02:00:00Z', key: 'tiny:2025-09' };

/** Starts a tick as `onceper run` does. */
async function tick(one: TestWorker, id: string, scheduledAt = SEPTEMBER.scheduledAt, job = 'tiny') {
  const start = { id, door: 'run', scheduledAt, actor: 'os:ann', overrides: {} };
  return one.client.workflow.execute('tick', {
    workflowId: `${job}-run-${id}`,
    taskQueue: 'onceper',
    args: [{ job, start }],
  });
}

async function isDone(key: string): Promise<boolean> {
  return (await actionByKey(db, key))?.state === 'done';
}

async function count(table: string): Promise<number> {
  const { rows } = await db.query<{ n: number }>(`select count(*)::int4 as n from ${table}`);
  return rows[0]?.n ?? -1;
}

test('a tick settles its period once; a later one is a duplicate with the first document and a completed workflow', async () => {
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs: [createTinyJob(10)] });
  expect(await tick(worker, 'one')).toMatchObject({ decision: 'admitted', key: SEPTEMBER.key });
  await waitFor(() => isDone(SEPTEMBER.key), { what: 'the document' });
  const duplicate = await tick(worker, 'two');
  expect(duplicate).toMatchObject({ decision: 'duplicate', result: { document: { id: `doc-${SEPTEMBER.key}` } } });
  const handle = worker.client.workflow.getHandle(SEPTEMBER.key);
  await handle.result();
  const description = await handle.describe();
  expect(description.status.name).toBe('COMPLETED');
  expect(description.searchAttributes).toMatchObject({
    OnceperJob: ['tiny'],
    OnceperPeriod: ['2025-09'],
    OnceperState: ['done'],
  });
});

test('Temporal itself refuses a second period workflow of a completed key, and one without an admitted run ends refused', async () => {
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs: [createTinyJob(1)] });
  await tick(worker, 'one');
  await worker.client.workflow.getHandle(SEPTEMBER.key).result();
  const again = worker.client.workflow.start('period', {
    workflowId: SEPTEMBER.key,
    workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
    taskQueue: 'onceper',
    args: [{ run: 'one' }],
  });
  await expect(again).rejects.toBeInstanceOf(WorkflowExecutionAlreadyStartedError);
  const stray = worker.client.workflow.execute('period', {
    workflowId: 'stray',
    taskQueue: 'onceper',
    args: [{ run: 'nobody' }],
  });
  await expect(stray).rejects.toMatchObject({ cause: { type: 'unknown_run' } });
  const second = await worker.client.workflow.execute('period', {
    workflowId: 'again',
    taskQueue: 'onceper',
    args: [{ run: 'one' }],
  });
  expect(second).toMatchObject({ key: SEPTEMBER.key, result: { document: { id: `doc-${SEPTEMBER.key}` } } });
});

/** Executes every activity twice and drops its first answer. */
function twice(activities: Activities): Activities {
  const doubled = Object.entries(activities).map(([name, run]) => [
    name,
    async (input: never) => {
      await run(input);
      return run(input);
    },
  ]);
  return Object.fromEntries(doubled) as Activities;
}

test('each activity executed twice with its first answer dropped leaves no second row, effect or document', async () => {
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs: [createTinyJob(20)], wrap: twice });
  await tick(worker, 'one');
  await waitFor(() => isDone(SEPTEMBER.key), { what: 'the document' });
  expect(await count('tiny.entry')).toBe(20);
  expect(await count('onceper.outbox')).toBe(20);
  expect(await count('tiny.document')).toBe(1);
  expect(await runsOfKey(db, SEPTEMBER.key)).toHaveLength(1);
  expect(await attemptsOfKey(db, SEPTEMBER.key)).toHaveLength(1);
});

test('two attempts whose backend the server ends in the middle of a slice are followed by a third that is done', async () => {
  let ended = 0;
  const job = createTinyJob(6, {
    async perform(tx, slice) {
      if (slice !== 3 || ended === 2) return;
      ended += 1;
      const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
      await db.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
      await tx.query('select 1');
    },
  });
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs: [job] });
  await tick(worker, 'one');
  await waitFor(() => isDone(SEPTEMBER.key), { what: 'the document', timeoutMs: 20_000 });
  const attempts = await attemptsOfKey(db, SEPTEMBER.key);
  expect(attempts.map(({ number, outcome, code }) => [number, outcome, code])).toEqual([
    [1, 'failed', 'connection_lost'],
    [2, 'failed', 'connection_lost'],
    [3, 'done', null],
  ]);
  expect(await count('tiny.entry')).toBe(6);
});

test('a job that always fails spends its budget: the action is exhausted, the workflow failed, and its ID free again', async () => {
  const job = createTinyJob(1, { perform: () => Promise.reject(new Error('never')) });
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs: [job] });
  await tick(worker, 'one');
  const result = worker.client.workflow.getHandle(SEPTEMBER.key).result();
  await expect(result).rejects.toBeInstanceOf(WorkflowFailedError);
  expect(await actionByKey(db, SEPTEMBER.key)).toMatchObject({ state: 'exhausted' });
  expect(await attemptsOfKey(db, SEPTEMBER.key)).toHaveLength(3);
  expect(await tick(worker, 'two')).toMatchObject({ decision: 'held', code: 'exhausted' });
});

test('months backfilled all at once by the schedule are settled in order, each after its predecessor', async () => {
  const job = createTinyJob(2, { needs: 'previous', id: 'chain' });
  await installTinyJob(db, { job: 'chain', first: '2025-01' });
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs: [job] });
  const schedule = await worker.client.schedule.create({
    scheduleId: 'chain',
    spec: { calendars: [{ dayOfMonth: 1, hour: 2 }], timezone: 'UTC' },
    action: {
      type: 'startWorkflow',
      workflowType: 'tick',
      workflowId: 'chain',
      taskQueue: 'onceper',
      args: [{ job: 'chain' }],
    },
    policies: { overlap: ScheduleOverlapPolicy.ALLOW_ALL },
    state: { paused: true },
  });
  const range = { start: new Date('2025-02-01T02:00:00Z'), end: new Date('2025-05-01T02:00:00Z') };
  await schedule.backfill({ ...range, overlap: ScheduleOverlapPolicy.ALLOW_ALL });
  await waitFor(() => isDone('chain:2025-04'), { what: 'the fourth month', timeoutMs: 25_000 });
  const { rows } = await db.query<{ key: string }>(
    `select key from onceper.action where job = 'chain' order by done_at`,
  );
  expect(rows.map((row) => row.key)).toEqual(['chain:2025-01', 'chain:2025-02', 'chain:2025-03', 'chain:2025-04']);
  const [run] = await runsOfKey(db, 'chain:2025-02');
  expect(run).toMatchObject({ trigger: 'schedule', actor: 'schedule:chain', scheduledAt: '2025-03-01T02:00:00Z' });
});

test('a period that was half-way when Temporal forgot everything is finished after the next tick', async () => {
  let held = true;
  const job = createTinyJob(6, {
    perform: (_, slice) => (held && slice === 5 ? Promise.reject(new Error('not yet')) : Promise.resolve()),
  });
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs: [job] });
  await tick(worker, 'one');
  await waitFor(async () => (await attemptsOfKey(db, SEPTEMBER.key)).length > 0, { what: 'the first attempt' });
  await worker.stop();
  held = false;
  namespace = await createTestNamespace();
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs: [job] });
  expect(await tick(worker, 'two')).toMatchObject({ decision: 'in_progress' });
  await waitFor(() => isDone(SEPTEMBER.key), { what: 'the document', timeoutMs: 15_000 });
  expect(await count('tiny.entry')).toBe(6);
  expect(await count('onceper.outbox')).toBe(6);
});

test('a drained worker finishes the slices it has begun, gives nothing up, and the next worker goes on', async () => {
  let begun = 0;
  const perform = async (tx: { query: Database['query'] }) => {
    begun += 1;
    await tx.query('select pg_sleep(0.05)');
  };
  await installTinyJob(db, { job: 'drained', leaseSeconds: 30 });
  const jobs = [createTinyJob(60, { id: 'drained', perform })];
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs });
  await tick(worker, 'one', SEPTEMBER.scheduledAt, 'drained');
  await waitFor(() => begun > 8, { what: 'some slices' });
  await worker.stop();
  const { rows } = await db.query<{ n: number }>(
    `select count(*)::int4 as n from onceper.slice where done_at is not null`,
  );
  expect(rows[0]?.n).toBe(begun);
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs });
  await waitFor(() => isDone('drained:2025-09'), { what: 'the document', timeoutMs: 20_000 });
  expect(begun).toBe(60);
  const outcomes = (await attemptsOfKey(db, 'drained:2025-09')).map((attempt) => attempt.outcome);
  // A task that the server handed over in the very moment of the drain is taken for lost; that costs nothing of the budget.
  expect([['done'], ['shutdown', 'done'], ['worker_lost', 'done']]).toContainEqual(outcomes);
});
