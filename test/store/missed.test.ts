import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ActivityServices } from '../../activities/services.ts';
import { createRegistry } from '../../src/jobs/registry.ts';
import { checkRule } from '../../src/ops/rule.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { filteredEntries } from '../../src/store/audit-read.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { openRunOf, servicesFor } from '../support/ledger.ts';
import { createTinyJob, installTinyJob, tinyRule } from '../support/tiny-job.ts';

let database: TestDatabase;
let db: Database;
let services: ActivityServices;
/** Three days whose firings at midnight, UTC, have passed; the first two more than an hour before the last. */
let days: readonly string[];

beforeEach(async () => {
  database = await createTestDatabase();
  db = openDatabase({ url: database.url, name: 'test', max: 4 });
  services = servicesFor(db, [createTinyJob(1)]);
  const { rows } = await db.query<{ day: string }>(
    `select to_char(clock_timestamp() at time zone 'UTC' - n * interval '1 day', 'YYYY-MM-DD') as day
       from generate_series(3, 1, -1) n`,
  );
  days = rows.map(({ day }) => day);
});
afterEach(async () => {
  await db.close();
  await database.drop();
});

/** A daily job that closes each day at its end. `missedAfterSeconds` of a second makes any firing of the past a missed one. */
async function installDaily(missedFirings: string): Promise<void> {
  const rule = { period: 'day', first: days[0], calendar: { hour: 0, minute: 0 } };
  await installTinyJob(db, { ...rule, missedFirings, missedAfterSeconds: 1 });
}

/** The tick of a day's own firing, as the schedule starts it when it catches up. */
function tick(day: string, more: Partial<Parameters<typeof openRunOf>[1]> = {}) {
  const at = new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString();
  return openRunOf(services, { scheduledAt: at, actor: 'schedule:tiny', ...more });
}

async function statesOf(): Promise<(string | undefined)[]> {
  return Promise.all(days.map(async (day) => (await actionByKey(db, `tiny:${day}`))?.state));
}

test.each([
  ['all are made up for', 'all', ['admitted', 'admitted', 'admitted']],
  ['the latest is made up for, and the others are skipped', 'latest', ['skipped', 'skipped', 'admitted']],
  ['none is made up for', 'none', ['skipped', 'skipped', 'skipped']],
])('of three missed firings %s', async (_, policy, expected) => {
  await installDaily(policy);
  const decisions = [];
  for (const day of days) decisions.push((await tick(day)).decision);
  expect(await statesOf()).toEqual(expected);
  expect(decisions).toEqual(expected.map((state) => (state === 'skipped' ? 'refused' : state)));
});

test('what is left out is recorded with the policy as its reason, once, and audited', async () => {
  await installDaily('none');
  const [day = ''] = days;
  const [first, again] = [await tick(day), await tick(day)];
  expect([first, again].map(({ decision, code }) => [decision, code])).toEqual([
    ['refused', 'period_skipped'],
    ['refused', 'period_skipped'],
  ]);
  const action = await actionByKey(db, `tiny:${day}`);
  expect(action?.skippedReason).toBe('by policy: its firing was missed, and the rule makes up for none of those');
  const any = { job: null, key: `tiny:${day}`, actor: null, verb: 'skip', from: null, to: null } as const;
  expect(await filteredEntries(db, any, { before: null, limit: 10 })).toHaveLength(1);
});

test('a firing that is not late enough is none that was missed', async () => {
  const rule = { period: 'day', first: days[0], calendar: { hour: 0, minute: 0 }, missedFirings: 'none' };
  await installTinyJob(db, { ...rule, missedAfterSeconds: 2 * 86_400 });
  expect((await tick(days[2] ?? '')).decision).toBe('admitted');
});

test('what a person asks for by name, and what waits already, is never left out', async () => {
  await installDaily('none');
  const [day = '', other = '', last = ''] = days;
  expect((await tick(day, { door: 'run', actor: 'os:ann' })).decision).toBe('admitted');
  expect((await tick(other, { door: 'backfill', actor: 'os:ann' })).decision).toBe('admitted');
  let isReady = false;
  const inspect = () =>
    Promise.resolve(
      isReady ? ({ kind: 'ready' } as const) : ({ kind: 'held', code: 'empty', reason: 'nothing there' } as const),
    );
  services = servicesFor(db, [createTinyJob(1, { inspect })]);
  const startId = randomUUID();
  expect((await tick(last, { startId, door: 'run' })).decision).toBe('held');
  isReady = true;
  expect((await tick(last, { startId })).decision).toBe('admitted');
});

test('a job whose periods need their predecessors can’t leave one out', () => {
  const chain = createRegistry([createTinyJob(1, { needs: 'previous' })]);
  const text = (missedFirings: string) => JSON.stringify(tinyRule({ missedFirings }));
  expect(() => checkRule(chain, text('latest'), 'rule.json')).toThrow(
    expect.objectContaining({
      code: 'malformed_rule',
      at: 'rule.json',
      message: expect.stringContaining('needs the one before it'),
    }),
  );
  expect(checkRule(chain, text('all'), 'rule.json').rule.missedFirings).toBe('all');
});
