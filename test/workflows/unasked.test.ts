import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Event } from '../../src/observability/events.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { runByStartId } from '../../src/store/runs.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';

const KEY = 'tiny:2026-08';
let database: TestDatabase;
let db: Database;
let namespace: TestNamespace;
let worker: TestWorker;
let events: Event[];

beforeEach(async () => {
  [database, namespace] = await Promise.all([createTestDatabase(), createTestNamespace()]);
  db = openDatabase({ url: database.url, name: 'test', max: 5 });
  events = [];
  await installTinyJob(db, { leaseSeconds: 2, first: '2026-08' });
  worker = await startTestWorker({
    namespace,
    databaseUrl: database.url,
    jobs: [createTinyJob(2, { needs: 'previous' })],
    log: (event) => void events.push(event),
  });
});
afterEach(async () => {
  await worker.stop();
  await db.close();
  await database.drop();
});

/** A run that waited for what is free now, and was last asked for so long ago: its tick is in no Temporal. */
async function deferredSince(minutes: number): Promise<void> {
  await db.query(
    `insert into onceper.run (start_id, job_id, scheduled_at, trigger, actor, period, key, decision, code, reason, decided_at)
     values ('waits', 'tiny', '2026-09-01T02:00:00Z', 'schedule', 'test', '2026-08', $1, 'deferred', 'predecessor_not_done', 'x',
             clock_timestamp() - $2 * interval '1 minute')`,
    [KEY, minutes],
  );
}

function check(): Promise<unknown> {
  return worker.client.workflow.execute('expect', { workflowId: 'expect-1', taskQueue: 'onceper', args: [] });
}

const named = () => events.filter((event) => event.event === 'period_overdue' && event.state === 'deferred');

test('a deferred run whose tick was lost with Temporal’s data is named, asked again and settled', async () => {
  await deferredSince(11);
  await check();
  expect(named()).toMatchObject([{ period: '2026-08' }]);
  await waitFor(async () => (await actionByKey(db, KEY))?.state === 'done', { what: 'the document' });
  expect(await runByStartId(db, 'waits')).toMatchObject({ decision: 'admitted', actor: 'test', trigger: 'schedule' });
});

test('a deferred run that is asked for is left to its own tick', async () => {
  await deferredSince(9);
  await check();
  expect(named()).toEqual([]);
  expect(await runByStartId(db, 'waits')).toMatchObject({ decision: 'deferred', asked: 1 });
  await expect(worker.client.workflow.getHandle('tiny-release-waits').describe()).rejects.toThrow();
});
