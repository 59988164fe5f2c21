import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { periodClosedBy } from '../../src/kernel/period.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { attemptsOfKey } from '../../src/store/attempts.ts';
import type { Database } from '../../src/store/database.ts';
import { cancelAction, skipAction } from '../../src/store/stop.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { claim, close, mustClaim, openRunOf, performOne, servicesFor, testPool } from '../support/ledger.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waive } from '../support/waive.ts';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = testPool(database.url);
  await installTinyJob(db);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

let month = 0;
let scheduledAt = '';
let key = '';
let period = '';
beforeEach(() => {
  month += 1;
  scheduledAt = `2021-${String(month + 1).padStart(2, '0')}-01T02:00:00Z`;
  period = periodClosedBy(scheduledAt, { kind: 'month', zone: 'UTC' });
  key = `tiny:${period}`;
});

const cancel = () => cancelAction(db, { key, actor: 'os:ann', reason: 'wrong rule', lockTimeout: 5_000 });
const skip = (hook = () => Promise.resolve()) =>
  skipAction(
    db,
    { key, job: 'tiny', period, actor: 'os:ann', reason: 'no trade', ruleVersion: 1, release: 'test' },
    hook,
  );

test('a running key is cancelled at once: its holder writes nothing more, its finished slices stay', async () => {
  const services = servicesFor(db, [createTinyJob(2)]);
  const { run } = await openRunOf(services, { scheduledAt });
  const grant = await mustClaim(services, { run });
  await performOne(services, grant, 0);
  expect(await cancel()).toEqual({ kind: 'stopped', from: 'running' });
  expect(await performOne(services, grant, 1)).toEqual({ kind: 'lease_lost' });
  expect(await close(services, grant)).toEqual({ kind: 'lease_lost' });
  expect(await claim(services, { run, execution: 'e', pass: 9 })).toMatchObject({ kind: 'refused', code: 'cancelled' });
  expect((await attemptsOfKey(db, key))[0]).toMatchObject({ outcome: 'cancelled', slicesFinished: 1 });
});

test('a cancelled key holds every later run until one is released, and that one does only what is left', async () => {
  const services = servicesFor(db, [createTinyJob(2)]);
  const first = await openRunOf(services, { scheduledAt });
  await performOne(services, await mustClaim(services, { run: first.run }), 0);
  await cancel();
  const startId = randomUUID();
  expect(await openRunOf(services, { startId, scheduledAt })).toMatchObject({ decision: 'held', code: 'cancelled' });
  await waive(db, startId);
  expect(await openRunOf(services, { startId, scheduledAt })).toMatchObject({ decision: 'admitted' });
  const grant = await mustClaim(services, { run: startId, execution: 'other' });
  expect(grant).toMatchObject({ fence: '2', slices: [1] });
  await performOne(services, grant, 1);
  expect(await close(services, grant)).toMatchObject({ kind: 'done' });
});

test('a done key can be neither cancelled nor skipped', async () => {
  const services = servicesFor(db, [createTinyJob(0)]);
  const { run } = await openRunOf(services, { scheduledAt });
  await close(services, await mustClaim(services, { run }));
  expect(await cancel()).toEqual({ kind: 'not_stoppable', state: 'done' });
  expect(await skip()).toEqual({ kind: 'not_stoppable', state: 'done' });
});

test('a skipped period is final: a later run is refused, a second skip and a cancel change nothing', async () => {
  const services = servicesFor(db, [createTinyJob(1)]);
  expect(await skip()).toEqual({ kind: 'stopped', from: 'none' });
  expect(await openRunOf(services, { scheduledAt })).toMatchObject({ decision: 'refused', code: 'period_skipped' });
  expect(await skip()).toEqual({ kind: 'not_stoppable', state: 'skipped' });
  expect(await cancel()).toEqual({ kind: 'not_stoppable', state: 'skipped' });
  expect(await actionByKey(db, key)).toMatchObject({ state: 'skipped', skippedReason: 'no trade' });
});

test('a key with a finished slice is not skipped, because its rows would be settled again', async () => {
  const services = servicesFor(db, [createTinyJob(2)]);
  const { run } = await openRunOf(services, { scheduledAt });
  await performOne(services, await mustClaim(services, { run }), 0);
  await cancel();
  expect(await skip()).toEqual({ kind: 'slices_finished', finished: 1 });
});

test('a skip whose job can not move its rows leaves nothing behind', async () => {
  await expect(skip(() => Promise.reject(new Error('no open period')))).rejects.toThrow('no open period');
  expect(await actionByKey(db, key)).toBeNull();
});
