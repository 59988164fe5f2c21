import { afterAll, beforeAll, expect, test } from 'vitest';
import { expected } from '../../activities/expected.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { type Database, openDatabase, transaction } from '../../src/store/database.ts';
import { recordSchedule } from '../../src/store/schedules.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { servicesFor } from '../support/ledger.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';
import { documentOf, typed } from './command-line.ts';

let database: TestDatabase;
let namespace: TestNamespace;
let db: Database;
let workers: TestWorker[];

beforeAll(async () => {
  [database, namespace] = [await createTestDatabase(), await createTestNamespace()];
  db = openDatabase({ url: database.url, name: 'test', max: 4 });
  await installTinyJob(db, { first: '2026-08' });
  await installTinyJob(db, { job: 'young', first: '2026-08' });
  await transaction(db, {}, (tx) => recordSchedule(tx, { job: 'young', plan: 'p', actor: 'user:ann' }));
  workers = [];
});
afterAll(async () => {
  for (const worker of workers) await worker.stop();
  await db.close();
  await database.drop();
});

async function start(...ids: string[]): Promise<TestWorker> {
  const jobs = ids.map((id) => createTinyJob(1, { id }));
  const worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs });
  workers.push(worker);
  return worker;
}

async function doctor(check: string) {
  const environment = {
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: namespace.address,
    TEMPORAL_NAMESPACE: namespace.namespace,
  };
  const printed = await typed(['doctor', '--json'], environment, { jobs: [createTinyJob(1)] });
  const { checks } = documentOf<{ checks: { check: string; state: string; detail: string }[] }>(printed);
  return checks.find((row) => row.check === check);
}

test('a run that no worker knows is told of by doctor and by the check, and goes on when one that does is started', async () => {
  const older = await start('tiny');
  const { client } = older;
  const start1 = { id: 'early', door: 'run', scheduledAt: '2026-09-01T02:00:00Z' };
  const args = [{ job: 'young', start: start1 }];
  await client.workflow.start('tick', { workflowId: 'early', taskQueue: 'onceper', args });
  const stranded = await waitFor(() => doctor('runs of young'), { what: 'the row of doctor' });
  expect(stranded).toMatchObject({
    state: 'fail',
    detail: expect.stringMatching(/^1 run waits since .*no worker that was asked knows the job$/),
  });
  expect(await doctor('jobs of workers')).toMatchObject({
    state: 'fail',
    detail: 'no worker that polls (release test) knows young, which has a schedule',
  });
  const events: unknown[] = [];
  await expected({ ...servicesFor(db, [createTinyJob(1)]), log: (event) => void events.push(event) });
  expect(events).toContainEqual(
    expect.objectContaining({ event: 'runs_stranded', job: 'young', code: 'unknown_job', count: 1 }),
  );

  await older.stop();
  workers = [];
  await start('tiny', 'young');
  await waitFor(async () => (await actionByKey(db, 'young:2026-08'))?.state === 'done', {
    what: 'the month',
    timeoutMs: 40_000,
  });
  expect(await doctor('runs of young')).toBeUndefined();
  expect(await doctor('jobs of workers')).toMatchObject({ state: 'ok' });
});
