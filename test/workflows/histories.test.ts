import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import type { History } from '@temporalio/common/lib/proto-utils.js';
import { historyFromJSON, historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import {
  bundleWorkflowCode,
  DefaultLogger,
  type ReplayHistoriesIterable,
  Worker,
  type WorkerOptions,
} from '@temporalio/worker';
import { beforeAll, expect, test } from 'vitest';
import { bundleWorkflows } from '../../src/app/worker.ts';
import { nextPeriod } from '../../src/kernel/period.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { insertBackfill, insertBackfillPeriods } from '../../src/store/backfills.ts';
import { type Database, openDatabase, transaction } from '../../src/store/database.ts';
import { createTestDatabase } from '../support/database.ts';
import { forced } from '../support/forced.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';
import { startTestWorker } from '../support/worker.ts';

/**
 * Recorded by `RECORD_HISTORIES=1 npx vitest run test/workflows/histories.test.ts`, one run a file, kept for good: a file that is
 * there is not written over.
 */
const FOLDER = join(import.meta.dirname, '../histories');
const SDK = 'sdk-1.24.0';

function recorded(): string[] {
  return readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
}

async function replay(bundle: NonNullable<WorkerOptions['workflowBundle']>, names: readonly string[]) {
  const histories: ReplayHistoriesIterable = (async function* () {
    for (const name of names) {
      yield { workflowId: name, history: historyFromJSON(JSON.parse(readFileSync(join(FOLDER, name), 'utf8'))) };
    }
  })();
  const outcomes: [string, string | null][] = [];
  for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle: bundle }, histories)) {
    outcomes.push([workflowId, error === undefined ? null : error.name]);
  }
  return outcomes;
}

beforeAll(async () => {
  if (process.env['RECORD_HISTORIES'] === undefined) return;
  await record();
});

test('every recorded history replays on the workflows of this release', async () => {
  const names = recorded();
  expect(names.length).toBeGreaterThanOrEqual(5);
  expect(await replay(await bundleWorkflows(), names)).toEqual(names.map((name) => [name, null]));
});

test('a workflow that was changed in its order fails the replay', async () => {
  const workflowsPath = join(import.meta.dirname, 'changed-workflows.ts');
  const bundle = await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
  const names = recorded();
  expect(await replay(bundle, names)).toEqual(names.map((name) => [name, 'DeterminismViolationError']));
});

test('a recorded history holds ids and no row: each stays under 64 KiB', () => {
  for (const name of recorded()) expect(readFileSync(join(FOLDER, name)).length).toBeLessThan(65_536);
});

/** Runs the scenarios on a real server and writes their histories. */
async function record(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  const [database, namespace] = [await createTestDatabase(), await createTestNamespace()];
  const db = openDatabase({ url: database.url, name: 'record', max: 4 });
  await installTinyJob(db);
  await installTinyJob(db, { job: 'chain', first: '2025-01' });
  let failed = false;
  const perform = () => {
    if (failed) return Promise.resolve();
    failed = true;
    return Promise.reject(new Error('once'));
  };
  const jobs = [createTinyJob(3, { perform }), createTinyJob(1, { id: 'chain', needs: 'previous' })];
  const worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs });
  const keep = (workflowId: string, name: string) => keepFrom(worker.client, workflowId, name);
  const start = (id: string, job: string, scheduledAt: string) =>
    worker.client.workflow.start('tick', {
      workflowId: id,
      taskQueue: 'onceper',
      args: [{ job, start: { id, door: 'run', scheduledAt, actor: 'os:ann', overrides: {} } }],
    });
  await start('tick-1', 'tiny', '2025-10-01T02:00:00Z');
  await keep('tick-1', 'tick-admitted');
  await keep('tiny:2025-09', 'period-failed-then-done');
  await start('tick-2', 'tiny', '2025-10-01T02:00:00Z');
  await keep('tick-2', 'tick-duplicate');
  await start('tick-3', 'chain', '2025-03-01T02:00:00Z');
  await waitFor(() => isDeferred(db), { what: 'the deferred run' });
  await start('tick-4', 'chain', '2025-02-01T02:00:00Z');
  await waitFor(async () => (await actionByKey(db, 'chain:2025-02'))?.state === 'done', {
    what: 'both months',
    timeoutMs: 20_000,
  });
  await keep('tick-3', 'tick-deferred-then-admitted');
  await keep('chain:2025-02', 'period-done');
  await startBackfill(db, worker.client, ['2025-05', '2025-06', '2025-07']);
  await keep('backfill-b-1', 'backfill-ended');
  await worker.stop();
  await db.close();
  await database.drop();
  await recordRewound(namespace);
}

/** A month that Temporal has completed is admitted by a ledger that does not know of it. */
async function recordRewound(namespace: TestNamespace): Promise<void> {
  const database = await createTestDatabase();
  const db = openDatabase({ url: database.url, name: 'record', max: 4 });
  await installTinyJob(db);
  const worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs: [createTinyJob(3)] });
  const start = { id: 'tick-5', door: 'run', scheduledAt: '2025-10-01T02:00:00Z', actor: 'os:ann', overrides: {} };
  const options = { workflowId: 'tick-5', taskQueue: 'onceper', args: [{ job: 'tiny', start }] };
  await worker.client.workflow.start('tick', options);
  await keepFrom(worker.client, 'tick-5', 'tick-rewound-goes-on');
  await worker.stop();
  await db.close();
  await database.drop();
}

async function keepFrom(client: Client, workflowId: string, name: string): Promise<void> {
  const handle = client.workflow.getHandle(workflowId);
  await handle.result();
  const history: History = await handle.fetchHistory();
  const file = join(FOLDER, `${name}-${SDK}.json`);
  if (existsSync(file)) return;
  writeFileSync(file, `${JSON.stringify(JSON.parse(historyToJSON(history)), null, 1)}\n`);
}

/** A backfill of three months of the tiny job, two at a time, as an executed approval leaves it. */
async function startBackfill(db: Database, client: Client, months: readonly string[]): Promise<void> {
  await forced(
    db,
    `insert into onceper.approval
       (id, kind, subject, job, ask, reason, plan, digest, state, requested_by, edited_by, expires_at,
        decided_by, decided_at, executed_by, executed_at)
     values ('b-1', 'backfill', 'tiny', 'tiny', '{}', 'missed', '{}', repeat('0', 64), 'executed', 'os:ann', 'os:ann',
             clock_timestamp() + interval '1 day', 'os:bob', clock_timestamp(), 'os:bob', clock_timestamp())`,
  );
  const periods = months.map((period) => ({
    period,
    key: `tiny:${period}`,
    startId: `b-1-${period}`,
    scheduledAt: `${nextMonth(period)}-01T02:00:00Z`,
    act: 'run' as const,
  }));
  await transaction(db, {}, async (tx) => {
    await insertBackfill(tx, { id: 'b-1', job: 'tiny', mostActive: 2, actor: 'os:ann', reason: 'missed' });
    await insertBackfillPeriods(tx, 'b-1', periods);
  });
  await client.workflow.start('backfill', { taskQueue: 'onceper', workflowId: 'backfill-b-1', args: [{ id: 'b-1' }] });
}

function nextMonth(period: string): string {
  return nextPeriod(period, { kind: 'month', zone: 'UTC' });
}

async function isDeferred(db: Database): Promise<boolean> {
  const { rowCount } = await db.query(`select from onceper.run where decision = 'deferred'`);
  return rowCount > 0;
}
