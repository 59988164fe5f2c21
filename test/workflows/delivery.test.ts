import { afterEach, beforeEach, expect, test } from 'vitest';
import { actionByKey } from '../../src/store/actions.ts';
import { type Database, openDatabase, transaction } from '../../src/store/database.ts';
import { clearDelivering } from '../../src/store/outbox-clear.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { forced } from '../support/forced.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';

const KEY = 'tiny:2025-09';
let database: TestDatabase;
let db: Database;
let namespace: TestNamespace;
let worker: TestWorker;

beforeEach(async () => {
  [database, namespace] = await Promise.all([createTestDatabase(), createTestNamespace()]);
  db = openDatabase({ url: database.url, name: 'test', max: 5 });
  await installTinyJob(db, { leaseSeconds: 2 });
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs: [createTinyJob(3)] });
  const start = { id: 'one', door: 'run', scheduledAt: '2025-10-01T02:00:00Z', actor: 'os:ann', overrides: {} };
  await worker.client.workflow.execute('tick', {
    workflowId: 'tick-1',
    taskQueue: 'onceper',
    args: [{ job: 'tiny', start }],
  });
  await worker.client.workflow.getHandle(KEY).result();
});
afterEach(async () => {
  await worker.stop();
  await db.close();
  await database.drop();
});

const watcher = () => worker.client.workflow.getHandle(`delivery:${KEY}`);

async function shown() {
  const { status, searchAttributes } = await watcher().describe();
  return { status: status.name, searchAttributes };
}

/** What a relay does, by hand: gives the first effects these fates, and clears the key where it may. */
async function give(state: string, limit: number): Promise<void> {
  await forced(
    db,
    `update onceper.outbox set state = $2, counterparty_id = 'tr', attempts = 1, first_sent_at = clock_timestamp()
      where number in (select number from onceper.outbox where key = $1 and state = 'pending' order by number limit $3)`,
    [KEY, state, limit],
  );
  await transaction(db, {}, (tx) => clearDelivering(tx, KEY));
}

test('a watcher begins at the close and shows delivering until every effect has a fate', async () => {
  expect(await shown()).toMatchObject({
    status: 'RUNNING',
    searchAttributes: { OnceperJob: ['tiny'], OnceperPeriod: ['2025-09'], OnceperState: ['delivering'] },
  });
  await give('needs_attention', 1);
  await give('succeeded', 2);
  expect((await actionByKey(db, KEY))?.delivering).toBe(false);
  await watcher().signal('wake');
  const details = await waitFor(
    async () => {
      const polled = (await watcher().fetchHistory()).events ?? [];
      return polled.some((event) => JSON.stringify(event.activityTaskCompletedEventAttributes ?? '') !== '""');
    },
    { what: 'a look of the watcher' },
  );
  expect(details).toBe(true);
  expect((await shown()).searchAttributes).toMatchObject({ OnceperState: ['delivering'] });
  await forced(db, `update onceper.outbox set state = 'failed' where state = 'needs_attention'`);
  await watcher().signal('wake');
  expect(await watcher().result()).toEqual({ kind: 'delivered', effects: { failed: 1, succeeded: 2 } });
  expect(await shown()).toMatchObject({
    status: 'COMPLETED',
    searchAttributes: { OnceperJob: ['tiny'], OnceperState: ['delivered'] },
  });
});

test('a signal wakes it: it looks at once, whatever its back-off has come to', async () => {
  await worker.client.workflow.start('delivery', {
    workflowId: 'patient',
    taskQueue: 'onceper',
    args: [{ key: KEY, waitMs: 60_000 }],
  });
  const handle = worker.client.workflow.getHandle('patient');
  const looked = async () => {
    const events = (await handle.fetchHistory()).events ?? [];
    return events.filter((event) => event.activityTaskCompletedEventAttributes).length;
  };
  await waitFor(async () => (await looked()) === 1, { what: 'its first look' });
  await give('succeeded', 3);
  const before = performance.now();
  await handle.signal('wake');
  expect(await handle.result()).toMatchObject({ kind: 'delivered' });
  expect(performance.now() - before).toBeLessThan(20_000);
});

test('a watcher that was lost is started again by the expectation check, once', async () => {
  await watcher().terminate('lost with Temporal’s memory');
  for (const id of ['expect-1', 'expect-2']) {
    await worker.client.workflow.execute('expect', { workflowId: id, taskQueue: 'onceper', args: [] });
  }
  expect(await shown()).toMatchObject({ status: 'RUNNING', searchAttributes: { OnceperState: ['delivering'] } });
  await give('succeeded', 3);
  await watcher().signal('wake');
  expect(await watcher().result()).toMatchObject({ kind: 'delivered' });
});
