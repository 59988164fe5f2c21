import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { actionByKey } from '../../src/store/actions.ts';
import { attemptsOfKey } from '../../src/store/attempts.ts';
import type { Database } from '../../src/store/database.ts';
import { cancelAction, skipAction } from '../../src/store/stop.ts';
import { createModelJob, type Interruptions } from '../model/model-job.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import {
  claim,
  close,
  endAttempt,
  mustClaim,
  openRunOf,
  performOne,
  servicesFor,
  testPool,
} from '../support/ledger.ts';
import { type Mishaps, withMishaps } from '../support/pausing.ts';
import { installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';

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
let period = '';
let key = '';
const interruptions: Interruptions = { seal: null, close: null, perform: null, refusesSeal: false };
const mishaps: Mishaps = { beforeTransaction: null, losesCommitAnswer: false };
beforeEach(() => {
  month += 1;
  scheduledAt = `2021-${String(month + 1).padStart(2, '0')}-01T02:00:00Z`;
  period = `2021-${String(month).padStart(2, '0')}`;
  key = `tiny:${period}`;
  Object.assign(interruptions, { seal: null, close: null, perform: null, refusesSeal: false });
});

/** Two slices a key; whatever is set as an interruption or a mishap happens to the next command that comes there. */
const world = {
  slices: 2,
  budgets: [3, 3],
  needsPrevious: false,
  runsInFlight: null,
  late: false,
  inspection: 'ready',
} as const;
const services = () => servicesFor(withMishaps(db, mishaps), [createModelJob('tiny', world, interruptions)]);
const admitted = async () => (await openRunOf(services(), { scheduledAt })).run;
const failed = { outcome: 'failed', code: 'boom', detail: null, slicesBegun: 1 } as const;
const outcomes = async () => (await attemptsOfKey(db, key)).map((attempt) => attempt.outcome);

test('a claim that a zombie of a lower pass overtakes by a moment supersedes it at once', async () => {
  const run = await admitted();
  await mustClaim(services(), { run, pass: 1 });
  mishaps.beforeTransaction = async () => void (await mustClaim(services(), { run, pass: 2 }));
  expect(await mustClaim(services(), { run, pass: 3 })).toMatchObject({ fence: '3', attempt: 3 });
  expect(await outcomes()).toEqual(['superseded', 'superseded', null]);
});

test('a first claim that slept in the seal, while another sealed and failed, takes over what that one planned', async () => {
  const run = await admitted();
  interruptions.seal = async () => {
    const other = await mustClaim(services(), { run, execution: 'other' });
    await performOne(services(), other, 0);
    await endAttempt(services(), { ...other, ...failed });
  };
  expect(await mustClaim(services(), { run })).toMatchObject({ fence: '2', slices: [1] });
  expect(await outcomes()).toEqual(['failed', null]);
});

test('a refused seal that another claim overtakes is not recorded, and that one holds the lease', async () => {
  const run = await admitted();
  interruptions.refusesSeal = true;
  interruptions.seal = () => {
    mishaps.beforeTransaction = async () => {
      interruptions.refusesSeal = false;
      await mustClaim(services(), { run, execution: 'other' });
    };
    return Promise.resolve();
  };
  expect(await claim(services(), { run, execution: 'execution-1', pass: 1 })).toMatchObject({ kind: 'busy' });
  expect(await outcomes()).toEqual([null]);
});

test('a close by an earlier holder is told that its lease is lost, not what its successor has left to do', async () => {
  const run = await admitted();
  const old = await mustClaim(services(), { run, pass: 1 });
  const now = await mustClaim(services(), { run, pass: 2 });
  expect(await close(services(), old)).toEqual({ kind: 'lease_lost' });
  expect(await close(services(), now)).toEqual({ kind: 'slices_left', left: 2 });
});

test('an attempt ends only when its slices in flight have: what they finish counts for its budget', async () => {
  const run = await admitted();
  const grant = await mustClaim(services(), { run });
  let goOn = () => {};
  const released = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  let inside = false;
  interruptions.perform = () => {
    inside = true;
    return released;
  };
  const slice = performOne(services(), grant, 0);
  await waitFor(() => inside, { what: 'the slice to be in flight' });
  const end = endAttempt(services(), { ...grant, ...failed });
  await waitFor(isBlocked, { what: 'the end to wait for the slice' });
  // The lease went first, so that no further slice can keep the end waiting.
  expect(await performOne(services(), grant, 1)).toEqual({ kind: 'lease_lost' });
  goOn();
  expect(await slice).toEqual({ kind: 'performed' });
  expect(await end).toMatchObject({ kind: 'again', spent: 0 });
  expect(await attemptsOfKey(db, key)).toMatchObject([{ outcome: 'failed', slicesFinished: 1 }]);
});

async function isBlocked(): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`,
  );
  return rowCount > 0;
}

test('a skip during which the period is claimed and partly settled is undone', async () => {
  const run = await admitted();
  const skip = { key, job: 'tiny', period, actor: 'os:ann', reason: 'no trade', ruleVersion: 1, release: 'test' };
  const meanwhile = async () => {
    const grant = await mustClaim(services(), { run });
    await performOne(services(), grant, 0);
    await endAttempt(services(), { ...grant, ...failed });
  };
  await expect(skipAction(db, skip, meanwhile)).rejects.toMatchObject({ code: 'skip_raced' });
  expect(await actionByKey(db, key)).toMatchObject({ state: 'failed', skippedReason: null });
});

test('a cancel that a claim overtakes between its two transactions says so and stops nothing', async () => {
  const run = await admitted();
  await mustClaim(services(), { run, pass: 1 });
  mishaps.beforeTransaction = async () => void (await mustClaim(services(), { run, pass: 2 }));
  expect(await cancelAction(services().db, { key, lockTimeout: 5_000 })).toEqual({ kind: 'busy' });
  expect(await actionByKey(db, key)).toMatchObject({ state: 'running', fence: 2n });
});
