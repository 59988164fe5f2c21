import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../src/store/database.ts';
import { runByStartId } from '../../src/store/runs.ts';
import { strandedRuns, unaskedRuns, waitingRunsOfJob } from '../../src/store/waiting-runs.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { openRunOf, servicesFor, testPool } from '../support/ledger.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = testPool(database.url);
  await installTinyJob(db, { first: '2026-01' });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const scheduledAt = '2026-02-01T02:00:00Z';

test.each([
  [
    'a job that this worker does not know',
    'unknown_job',
    'young',
    async () => installTinyJob(db, { job: 'young', first: '2026-01' }),
  ],
  ['a job whose rule nobody has loaded', 'no_rule', 'unruled', async () => undefined],
])('%s waits without a key, and is admitted by a worker that knows it', async (_, code, job, beforehand) => {
  await beforehand();
  const knows = servicesFor(db, [createTinyJob(1), createTinyJob(1, { id: job })]);
  const older = code === 'unknown_job' ? servicesFor(db, [createTinyJob(1)]) : knows;
  const startId = randomUUID();
  const asks: (number | null)[] = [];
  for (let ask = 0; ask < 3; ask += 1) {
    const waits = await openRunOf(older, { startId, job, scheduledAt });
    expect(waits).toMatchObject({ decision: 'deferred', code, key: null });
    asks.push(waits.askAgainMs);
  }
  expect(asks).toEqual([1_000, 2_000, 4_000]);
  expect(await strandedRuns(db, 10)).toMatchObject([{ job, code, count: 1 }]);
  expect(await waitingRunsOfJob(db, job)).toEqual([]);
  expect(await unaskedRuns(db, { jobs: [job], unaskedMs: -1_000, limit: 5 })).toMatchObject([
    { run: startId, key: null },
  ]);
  const { rows } = await db.query(`select from onceper.audit where run = $1 and verb = 'deferred'`, [startId]);
  expect(rows).toHaveLength(1);

  if (code === 'no_rule') await installTinyJob(db, { job, first: '2026-01' });
  const key = `${job}:2026-01`;
  expect(await openRunOf(knows, { startId, job, scheduledAt })).toMatchObject({
    decision: 'admitted',
    key,
    owner: startId,
  });
  expect(await runByStartId(db, startId)).toMatchObject({ key, period: '2026-01', trigger: 'schedule' });
  expect(await strandedRuns(db, 10)).toEqual([]);
  expect(await openRunOf(older, { startId, job, scheduledAt })).toMatchObject({ decision: 'admitted' });
});
