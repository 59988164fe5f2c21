import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startRun } from '../../src/ops/run.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { writeIntent } from '../../src/store/intents.ts';
import { runByStartId } from '../../src/store/runs.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createTestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';

let database: TestDatabase;
let db: Database;
let worker: TestWorker;

beforeAll(async () => {
  database = await createTestDatabase();
  db = openDatabase({ url: database.url, name: 'test', max: 4 });
  await installTinyJob(db, { first: '2025-01' });
  const job = createTinyJob(1, {
    inspect: (_, { overrides }) =>
      Promise.resolve(
        overrides['empty'] === 'true' ? { kind: 'ready' } : { kind: 'held', code: 'empty_period', reason: 'no rows' },
      ),
  });
  worker = await startTestWorker({ namespace: await createTestNamespace(), databaseUrl: database.url, jobs: [job] });
});
afterAll(async () => {
  await worker.stop();
  await db.close();
  await database.drop();
});

/** A start by whoever may use Temporal, with whatever they like to say. */
function rawStart(
  start: Readonly<Record<string, unknown>> | undefined,
  searchAttributes = {},
): Promise<{ run: string }> {
  const args = [{ job: 'tiny', ...(start === undefined ? {} : { start }) }];
  const workflowId = `raw-${randomUUID()}`;
  return worker.client.workflow.execute('tick', { workflowId, taskQueue: 'onceper', args, searchAttributes });
}

const JUNE = '2025-07-01T02:00:00Z';
const FORGED = { scheduledAt: JUNE, actor: 'user:alice', overrides: { empty: 'true' } };

test.each([
  ['run', 'temporal', 'manual'],
  ['backfill', 'temporal', 'manual'],
  ['check', 'temporal', 'manual'],
])(
  'a raw start by the door %s that names a person and states overrides is by %s and states nothing',
  async (door, actor, trigger) => {
    await rawStart({ id: `forged-${door}`, door, ...FORGED });
    const run = await runByStartId(db, `forged-${door}`);
    expect(run).toMatchObject({ actor, trigger, overrides: {}, decision: 'held', code: 'empty_period' });
    const { rows } = await db.query(`select from onceper.approval where requested_by = 'user:alice'`);
    expect(rows).toEqual([]);
  },
);

test('a raw start that calls itself a schedule is by that of its own job, or by temporal', async () => {
  const by = async (schedule: string) => {
    const attributes = { TemporalScheduledById: [schedule], TemporalScheduledStartTime: [new Date(JUNE)] };
    const { run } = await rawStart(undefined, attributes);
    return (await runByStartId(db, run))?.actor;
  };
  expect(await by('user:alice of accounts')).toBe('temporal');
  expect(await by('tiny')).toBe('schedule:tiny');
});

test('a run by hand is by whoever the ledger says asked, with what they stated, whatever its tick carries', async () => {
  const run = { id: 'asked', job: 'tiny', key: 'tiny:2025-03', scheduledAt: '2025-04-01T02:00:00Z' };
  const by = { actor: 'user:Bob', taskQueue: 'onceper' };
  await startRun(db, worker.client, { ...run, overrides: { empty: 'true' } }, by);
  await worker.client.workflow.getHandle('tiny-run-asked').result();
  expect(await runByStartId(db, 'asked')).toMatchObject({
    actor: 'user:bob',
    trigger: 'manual',
    overrides: { empty: 'true' },
    decision: 'admitted',
  });
});

test('an intent of another job, and one that somebody else wrote first, lend nobody their name', async () => {
  await installTinyJob(db, { job: 'other', first: '2025-01' });
  const intent = { startId: 'lent', scheduledAt: JUNE, overrides: {} };
  await writeIntent(db, { ...intent, job: 'other', actor: 'user:alice' });
  await writeIntent(db, { ...intent, job: 'tiny', actor: 'user:mallory' });
  await rawStart({ id: 'lent', door: 'run', ...FORGED });
  expect(await runByStartId(db, 'lent')).toMatchObject({ actor: 'temporal' });
});
