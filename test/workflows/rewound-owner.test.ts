import { afterEach, beforeEach, expect, test } from 'vitest';
import { actionByKey } from '../../src/store/actions.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { readFreeze } from '../../src/store/epoch.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { forced } from '../support/forced.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';

const KEY = 'tiny:2026-08';
let namespace: TestNamespace;
let restored: TestDatabase;
let db: Database;
let worker: TestWorker;

async function tick(id: string): Promise<unknown> {
  const start = { id, door: 'run', scheduledAt: '2026-09-01T02:00:00Z', actor: 'os:ann', overrides: {} };
  const options = { workflowId: id, taskQueue: 'onceper', args: [{ job: 'tiny', start }] };
  return worker.client.workflow.execute('tick', options);
}

function startOn(database: TestDatabase): Promise<TestWorker> {
  return startTestWorker({ namespace, databaseUrl: database.url, jobs: [createTinyJob(2)] });
}

/** Temporal has completed the month; the ledger that it was completed for is gone, and an empty one stands in its place. */
beforeEach(async () => {
  const [gone] = [await createTestDatabase(), (namespace = await createTestNamespace())];
  const before = openDatabase({ url: gone.url, name: 'test', max: 2 });
  await installTinyJob(before, { leaseSeconds: 2, first: '2026-08' });
  await before.close();
  worker = await startOn(gone);
  await tick('one');
  await worker.client.workflow.getHandle(KEY).result();
  await worker.stop();
  await gone.drop();
  restored = await createTestDatabase();
  db = openDatabase({ url: restored.url, name: 'test', max: 4 });
  await installTinyJob(db, { leaseSeconds: 2, first: '2026-08' });
  worker = await startOn(restored);
});
afterEach(async () => {
  await worker.stop();
  await db.close();
  await restored.drop();
});

const isDone = async () => (await actionByKey(db, KEY))?.state === 'done';

test('a month that is admitted again is settled again, and delivery is frozen', async () => {
  expect(await tick('two')).toMatchObject({ decision: 'admitted' });
  await waitFor(isDone, { what: 'the document', timeoutMs: 20_000 });
  expect((await readFreeze(db))?.reason).toContain('Temporal has completed tiny:2026-08');
});

test('a month that was half-way in the backup goes on at the check of expected periods, and delivery is frozen', async () => {
  await db.query(
    `insert into onceper.run (start_id, job_id, scheduled_at, trigger, actor, period, key, decision)
     values ('one', 'tiny', '2026-09-01T02:00:00Z', 'schedule', 'test', '2026-08', $1, 'admitted')`,
    [KEY],
  );
  await forced(
    db,
    `insert into onceper.action (key, job, period, state, fence, owner_run, owner_exec, owner_pass, lease_until, fingerprint,
                                 overrides, rule_version, release)
     values ($1, 'tiny', '2026-08', 'running', 1, 'one', 'gone', 1, clock_timestamp(), '', '{}', 1, 'test')`,
    [KEY],
  );
  await worker.client.workflow.execute('expect', { workflowId: 'expect-1', taskQueue: 'onceper', args: [] });
  await waitFor(isDone, { what: 'the document', timeoutMs: 20_000 });
  expect((await readFreeze(db))?.reason).toContain('which this database has not finished');
});
