import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { parseRule } from '../../src/jobs/rule.ts';
import { periodClosedBy } from '../../src/kernel/period.ts';
import { actionByKey } from '../../src/store/actions.ts';
import type { Database } from '../../src/store/database.ts';
import { loadFirstRule } from '../../src/store/rules.ts';
import { runsOfKey } from '../../src/store/runs.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { forced } from '../support/forced.ts';
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
import { createTinyJob, installTinyJob, tinyRule } from '../support/tiny-job.ts';
import { waive } from '../support/waive.ts';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = testPool(database.url, 50);
  await installTinyJob(db);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

let month = 0;
let scheduledAt = '';
let key = '';
/** A month of its own for each test. */
beforeEach(() => {
  month += 1;
  const at = { year: 2021 + Math.floor(month / 12), month: (month % 12) + 1 };
  scheduledAt = `${at.year}-${String(at.month).padStart(2, '0')}-01T02:00:00Z`;
  key = `tiny:${periodClosedBy(scheduledAt, { kind: 'month', zone: 'UTC' })}`;
});

async function settle(services: ReturnType<typeof servicesFor>, run: string) {
  const grant = await mustClaim(services, { run });
  for (const slice of grant.slices) await performOne(services, grant, slice);
  return close(services, grant);
}

test('of fifty parallel opens of one key one is admitted and forty-nine name the winner', async () => {
  const services = servicesFor(db, [createTinyJob(2)]);
  const opened = await Promise.all(Array.from({ length: 50 }, () => openRunOf(services, { scheduledAt })));
  const admitted = opened.filter((run) => run.decision === 'admitted');
  expect(admitted).toHaveLength(1);
  expect(opened.filter((run) => run.decision === 'in_progress')).toHaveLength(49);
  expect(new Set(opened.map((run) => run.owner))).toEqual(new Set([admitted[0]?.run]));
  const runs = await runsOfKey(db, key);
  expect(runs).toHaveLength(50);
  expect(runs.filter((run) => run.repeatOf === null)).toHaveLength(1);
});

test('opened twice with one start id a run gives its stored decision back, in parallel too', async () => {
  const services = servicesFor(db, [createTinyJob(1)]);
  const startId = randomUUID();
  const opened = await Promise.all(Array.from({ length: 20 }, () => openRunOf(services, { startId, scheduledAt })));
  expect(new Set(opened.map((run) => run.decision))).toEqual(new Set(['admitted']));
  expect(await runsOfKey(db, key)).toHaveLength(1);
});

test('a key that is done answers every later run with the first result', async () => {
  const services = servicesFor(db, [createTinyJob(2)]);
  const first = await openRunOf(services, { scheduledAt });
  const closed = await settle(services, first.run);
  const again = await openRunOf(services, { scheduledAt: scheduledAt.replace('02:00', '09:30') });
  expect(again).toMatchObject({ decision: 'duplicate', key, owner: first.run });
  expect(closed).toEqual({ kind: 'done', result: again.result });
});

test('an override that differs from what was settled is a conflict; none states nothing and is a duplicate', async () => {
  const services = servicesFor(db, [createTinyJob(1)]);
  const first = await openRunOf(services, { scheduledAt, overrides: { color: 'red' } });
  await settle(services, first.run);
  expect(await openRunOf(services, { scheduledAt, overrides: { color: 'blue' } })).toMatchObject({
    decision: 'conflict',
  });
  expect(await openRunOf(services, { scheduledAt, overrides: { color: 'red' } })).toMatchObject({
    decision: 'duplicate',
  });
  expect(await openRunOf(services, { scheduledAt })).toMatchObject({ decision: 'duplicate' });
});

test.each([
  ['no nominal time', { scheduledAt: null }, 'no_nominal_time'],
  ['a time that is no instant', { scheduledAt: 'yesterday' }, 'malformed_instant'],
  ['an unknown override', { overrides: { size: '1' } }, 'unknown_override'],
  ['a period before the first', { scheduledAt: '2019-02-01T02:00:00Z' }, 'before_first'],
  ['a period that has not ended', { scheduledAt: '2090-02-01T02:00:00Z' }, 'not_ended'],
])('%s is refused, recorded, and owns nothing', async (_, input, code) => {
  const services = servicesFor(db, [createTinyJob(1)]);
  const startId = randomUUID();
  const refused = await openRunOf(services, { startId, ...input });
  expect(refused).toMatchObject({ decision: 'refused', code, key: null });
  expect(await openRunOf(services, { startId, ...input })).toMatchObject({ decision: 'refused', code });
});

test('a run held by the job is admitted once what holds it was waived, and only then', async () => {
  const held = { kind: 'held', code: 'empty', reason: 'nothing to settle' } as const;
  const services = servicesFor(db, [createTinyJob(1, { inspect: () => Promise.resolve(held) })]);
  const startId = randomUUID();
  expect(await openRunOf(services, { startId, scheduledAt })).toMatchObject({ decision: 'held', code: 'empty' });
  expect(await actionByKey(db, key)).toBeNull();
  expect(await openRunOf(services, { startId, scheduledAt })).toMatchObject({ decision: 'held' });
  await waive(db, startId);
  expect(await openRunOf(services, { startId, scheduledAt })).toMatchObject({ decision: 'admitted', owner: startId });
});

test('an exhausted key holds every later run; a released one admits it again for that run with its slices kept', async () => {
  const services = servicesFor(db, [createTinyJob(3)]);
  const first = await openRunOf(services, { scheduledAt });
  for (let pass = 1; pass <= 3; pass += 1) {
    const grant = await mustClaim(services, { run: first.run, pass });
    const end = { key, fence: grant.fence, outcome: 'failed', code: 'boom', detail: null, slicesBegun: 1 } as const;
    const next = await endAttempt(services, end);
    expect(next.kind).toBe(pass === 3 ? 'exhausted' : 'again');
  }
  expect(await claim(services, { run: first.run, execution: 'e', pass: 9 })).toMatchObject({
    kind: 'refused',
    code: 'exhausted',
  });
  const startId = randomUUID();
  expect(await openRunOf(services, { startId, scheduledAt })).toMatchObject({ decision: 'held', code: 'exhausted' });
  await waive(db, startId);
  expect(await openRunOf(services, { startId, scheduledAt })).toMatchObject({ decision: 'admitted', owner: startId });
  expect(await settle(services, startId)).toMatchObject({ kind: 'done' });
  expect((await actionByKey(db, key))?.fence).toBe(4n);
});

test('a run whose predecessor is not done is deferred, and admitted as soon as it is', async () => {
  const job = createTinyJob(1, { needs: 'previous', id: 'chain' });
  const services = servicesFor(db, [job]);
  await installTinyJob(db, { job: 'chain', first: '2026-01' });
  const second = randomUUID();
  const ask = () => openRunOf(services, { job: 'chain', startId: second, scheduledAt: '2026-03-01T02:00:00Z' });
  expect(await ask()).toMatchObject({ decision: 'deferred', code: 'predecessor_not_done', askAgainMs: 1000 });
  expect(await ask()).toMatchObject({ decision: 'deferred', askAgainMs: 2000 });
  const first = await openRunOf(services, { job: 'chain', scheduledAt: '2026-02-01T02:00:00Z' });
  expect(first.decision).toBe('admitted');
  expect(await ask()).toMatchObject({ decision: 'deferred', askAgainMs: 1000 });
  await settle(services, first.run);
  expect(await ask()).toMatchObject({ decision: 'admitted', owner: second });
});

test('deciding a duplicate writes no WAL when its start id is known, and one run row when it is new', async (context) => {
  const { rows } = await db.query<{ version: number }>(`select current_setting('server_version_num')::int4 as version`);
  context.skip((rows[0]?.version ?? 0) < 180_000, 'PostgreSQL before 18 does not count the WAL of one backend');
  const one = testPool(database.url, 1);
  try {
    const services = servicesFor(one, [createTinyJob(1)]);
    const first = await openRunOf(services, { scheduledAt });
    await settle(services, first.run);
    const startId = randomUUID();
    await openRunOf(services, { startId, scheduledAt });
    await one.query('vacuum onceper.action');
    await one.query('vacuum onceper.run');
    const before = await walOfBackend(one);
    for (let hit = 0; hit < 50; hit += 1) await openRunOf(services, { startId, scheduledAt });
    expect(await walOfBackend(one)).toEqual(before);
    await openRunOf(services, { scheduledAt });
    const after = await walOfBackend(one);
    expect(after.bytes - before.bytes).toBeGreaterThan(0n);
    expect(after.bytes - before.bytes).toBeLessThan(20_000n);
  } finally {
    await one.close();
  }
});

async function walOfBackend(one: Database): Promise<{ records: bigint; bytes: bigint }> {
  await one.query('select pg_stat_force_next_flush()');
  const { rows } = await one.query<{ records: bigint; bytes: bigint }>(
    `select wal_records as records, wal_bytes::bigint as bytes from pg_stat_get_backend_wal(pg_backend_pid())`,
  );
  return rows[0] ?? { records: 0n, bytes: 0n };
}

test('an open that fails while it decides leaves the key free for the one that waits behind it', async () => {
  let asked = 0;
  const inspect = () => {
    asked += 1;
    return asked === 1
      ? Promise.reject(new Error('the first one breaks'))
      : Promise.resolve({ kind: 'ready' } as const);
  };
  const services = servicesFor(db, [createTinyJob(1, { inspect })]);
  const opened = await Promise.allSettled([openRunOf(services, { scheduledAt }), openRunOf(services, { scheduledAt })]);
  const decided = opened.filter((one) => one.status === 'fulfilled').map((one) => one.value.decision);
  expect(decided).toEqual(['admitted']);
  expect(await runsOfKey(db, key)).toHaveLength(1);
});

test('with a limit of three, three of thirty parallel opens of different keys are admitted and the others say why not', async () => {
  await installTinyJob(db, { job: 'limited', limits: { runsInFlight: 3 } });
  const services = servicesFor(db, [createTinyJob(1, { id: 'limited' })]);
  const months = Array.from(
    { length: 30 },
    (_, at) => `${2021 + Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')}`,
  );
  const opened = await Promise.all(
    months.map((name) => openRunOf(services, { job: 'limited', scheduledAt: `${name}-01T02:00:00Z` })),
  );
  const admitted = opened.filter((run) => run.decision === 'admitted');
  expect(admitted).toHaveLength(3);
  expect(opened.filter((run) => run.decision === 'deferred' && run.code === 'too_many_in_flight')).toHaveLength(27);
  await settle(services, admitted[0]?.run ?? '');
  const waiting = opened.find((run) => run.decision === 'deferred');
  expect(await openRunOf(services, { job: 'limited', startId: waiting?.run ?? '' })).toMatchObject({
    decision: 'admitted',
  });
});

test('a backlog over its count or over its oldest age defers, and admits when it clears', async () => {
  await installTinyJob(db, { job: 'full', limits: { backlogEffects: 2 } });
  await installTinyJob(db, { job: 'old', limits: { backlogOldestSeconds: 60 } });
  const services = servicesFor(db, [createTinyJob(2, { id: 'full' }), createTinyJob(1, { id: 'old' })]);
  for (const [job, code] of [
    ['full', 'backlog_count'],
    ['old', 'backlog_age'],
  ] as const) {
    await settle(services, (await openRunOf(services, { job, scheduledAt: '2021-02-01T02:00:00Z' })).run);
    await forced(db, `update onceper.action set done_at = done_at - interval '2 minutes' where job = $1`, [job]);
    const startId = randomUUID();
    const ask = () => openRunOf(services, { job, startId, scheduledAt: '2021-03-01T02:00:00Z' });
    expect(await ask()).toMatchObject({ decision: 'deferred', code });
    await db.query(`update onceper.action set delivering = false where job = $1`, [job]);
    expect(await ask()).toMatchObject({ decision: 'admitted' });
  }
});

test('a rule that states no limits has those that protect: sixteen keys in flight, a million effects, a week', async () => {
  const { limits: _, ...unlimited } = tinyRule({ job: 'unstated' });
  expect(parseRule(unlimited, 'unstated').limits).toEqual({
    runsInFlight: 16,
    backlogEffects: 1_000_000,
    backlogOldestSeconds: 604_800,
  });
  await loadFirstRule(db, { job: 'unstated', body: unlimited, loadedBy: 'test' });
  const services = servicesFor(db, [createTinyJob(1, { id: 'unstated' })]);
  const decided: string[] = [];
  for (let at = 0; at < 17; at += 1) {
    const month = `${2021 + Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')}`;
    decided.push((await openRunOf(services, { job: 'unstated', scheduledAt: `${month}-01T02:00:00Z` })).code);
  }
  expect(decided.slice(0, 16).filter((code) => code === 'too_many_in_flight')).toEqual([]);
  expect(decided.at(-1)).toBe('too_many_in_flight');
});

test('a run later than the rule allows is held by whatever door, and admitted under the same run once released', async () => {
  await installTinyJob(db, { job: 'punctual', latenessDays: 10 });
  const services = servicesFor(db, [createTinyJob(1, { id: 'punctual' })]);
  for (const door of ['schedule', 'run', 'backfill'] as const) {
    const held = await openRunOf(services, { job: 'punctual', door, scheduledAt: '2021-02-01T02:00:00Z' });
    expect(held).toMatchObject({ decision: 'held', code: 'late' });
  }
  const startId = randomUUID();
  await openRunOf(services, { job: 'punctual', startId, scheduledAt: '2021-02-01T02:00:00Z' });
  await waive(db, startId);
  expect(await openRunOf(services, { job: 'punctual', startId })).toMatchObject({
    decision: 'admitted',
    owner: startId,
  });
});
