import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expected } from '../../activities/expected.ts';
import { decidedUntil } from '../../src/jobs/due.ts';
import { type JobRule, periodCalendar, storedRule } from '../../src/jobs/rule.ts';
import { compareInstants, instantPlus } from '../../src/kernel/instant.ts';
import { existingPeriod, periodBounds, periodContaining, periodsBetween } from '../../src/kernel/period.ts';
import type { Instant } from '../../src/kernel/sql.ts';
import type { ZoneClock } from '../../src/kernel/zone-clock.ts';
import { clockContinued, clockFrom, clockIn, clockOfProcess, firstDisagreement } from '../../src/kernel/zone-clock.ts';
import type { Event } from '../../src/observability/events.ts';
import { clockOf, type Database } from '../../src/store/database.ts';
import { activeRule, loadFirstRule } from '../../src/store/rules.ts';
import { clockOfServer } from '../../src/store/zone-tables.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { servicesFor, testPool } from '../support/ledger.ts';
import { createTinyJob, installTinyJob, tinyRule } from '../support/tiny-job.ts';
import { plantChanges } from '../support/zone-changes.ts';

let database: TestDatabase;
let db: Database;
beforeEach(async () => {
  database = await createTestDatabase();
  db = testPool(database.url, 8);
});
afterEach(async () => {
  await db.close();
  await database.drop();
});

const london = { zone: 'Europe/London', first: '2026-01' };
const HOUR = 3_600;

async function ruleNow(): Promise<JobRule> {
  const stored = await activeRule(db, 'tiny');
  if (stored === null) throw new Error('the tiny job has no rule');
  return storedRule(stored);
}

/** The check of expected periods, as a worker makes it; what it logs about zones. */
async function check(): Promise<readonly Event[]> {
  const events: Event[] = [];
  await expected({ ...servicesFor(db, [createTinyJob(1)]), log: (event) => void events.push(event) });
  return events.filter(({ event }) => event === 'zone_adopted');
}

async function tables() {
  const { rows } = await db.query<{
    readonly version: number;
    readonly source: string;
    readonly digest: string;
    readonly from: Instant | null;
    readonly by: string;
  }>(`select version, source, digest, holds_from as from, adopted_by as by from onceper.zone_table order by version`);
  return rows;
}

async function entries(verb: string): Promise<readonly { readonly actor: string; readonly detail: unknown }[]> {
  const { rows } = await db.query<{ actor: string; detail: string }>(
    `select actor, detail from onceper.audit where verb = $1 order by seq`,
    [verb],
  );
  return rows.map(({ actor, detail }) => ({ actor, detail: JSON.parse(detail) as unknown }));
}

/** Makes the server learn that from an instant on the zone's clock is some hours ahead of UTC for good. */
async function learn(from: Instant, hours: number): Promise<ZoneClock> {
  const { clock } = await clockOfServer(db, london.zone, london.first);
  const law = clockFrom({ ...clock, transitions: [{ at: Date.parse(from) / 1_000, offset: hours * HOUR }] });
  const transitions = clockContinued(clock, law, from);
  await plantChanges(db, transitions);
  return clockFrom({ ...clock, transitions });
}

describe('the table of a job’s zone', () => {
  test('is stored with its rule as version 1, and the rule’s audit entry names its facts', async () => {
    await installTinyJob(db, london);
    const [table, ...others] = await tables();
    expect(others).toEqual([]);
    expect(table).toMatchObject({ version: 1, from: null, by: 'test' });
    expect(table?.source).toMatch(/^PostgreSQL \d+/);
    const facts = `${table?.source}, zone table ${table?.digest.slice(0, 12)}`;
    expect(clockIn(await ruleNow()).facts).toBe(facts);
    expect(await entries('load-rule')).toEqual([
      { actor: 'test', detail: expect.objectContaining({ version: 1, zoneFacts: facts }) },
    ]);
    expect(await entries('adopt-zone')).toEqual([]);
  });

  test('gets no version more by being loaded or checked again', async () => {
    await installTinyJob(db, london);
    const before = await tables();
    await installTinyJob(db, london);
    expect([await check(), await check()]).toEqual([[], []]);
    expect(await tables()).toEqual(before);
    expect(await entries('adopt-zone')).toEqual([]);
  });

  test('is one version, whoever loads the rule at once and whoever learns of a law at once', async () => {
    const rule = { job: 'tiny', body: tinyRule(london), loadedBy: 'test' };
    await Promise.all(Array.from({ length: 4 }, () => loadFirstRule(db, rule)));
    expect(await tables()).toHaveLength(1);
    await learn('2026-02-01T00:00:00Z', 3);
    const events = await Promise.all(Array.from({ length: 4 }, check));
    expect(events.flat()).toHaveLength(1);
    expect((await tables()).map(({ version }) => version)).toEqual([1, 2]);
    expect(await entries('adopt-zone')).toHaveLength(1);
  });

  test('of a zone that PostgreSQL does not know is unknown_zone, and no rule is stored', async () => {
    const refused = expect.objectContaining({
      code: 'unknown_zone',
      at: 'Mars/Olympus_Mons',
      message: expect.stringMatching(/^PostgreSQL \S+ knows no time zone/),
    });
    await expect(clockOfServer(db, 'Mars/Olympus_Mons', '2026-01')).rejects.toEqual(refused);
    const body = tinyRule({ zone: 'Mars/Olympus_Mons' });
    await expect(loadFirstRule(db, { job: 'tiny', body, loadedBy: 'test' })).rejects.toEqual(refused);
    expect([await tables(), await activeRule(db, 'tiny')]).toEqual([[], null]);
  });

  test.each(['Africa/Casablanca', 'America/Recife', 'Australia/Lord_Howe', 'Europe/London', 'Pacific/Apia', 'UTC'])(
    'of %s has each change to the second, as Node knows it too',
    async (zone) => {
      const { clock } = await clockOfServer(db, zone, '1974-01');
      const [from, to] = ['1972-01-01T00:00:00Z', '2025-01-01T00:00:00Z'].map((at) => Date.parse(at) / 1_000);
      expect(clock.transitionsBetween(from ?? 0, to ?? 0)).toEqual(
        clockOfProcess(zone).transitionsBetween(from ?? 0, to ?? 0),
      );
      expect(clock.offsetAt(from ?? 0)).toBe(clockOfProcess(zone).offsetAt(from ?? 0));
    },
  );
});

test('what PostgreSQL learns holds from the end of the next period on, and what was decided keeps its place', async () => {
  await installTinyJob(db, london);
  const old = await ruleNow();
  const decided = decidedUntil(old, await clockOf(db));
  // A law of long ago, as a server learns of it that was not updated for months.
  const young = await learn('2026-02-01T00:00:00Z', 5);
  expect(await check()).toEqual([
    { event: 'zone_adopted', job: 'tiny', zone: london.zone, facts: expect.any(String), from: decided },
  ]);
  const rule = await ruleNow();
  const [one, two] = await tables();
  expect(two).toMatchObject({ version: 2, from: decided, by: expect.stringContaining('worker') });
  const { source, digest } = two ?? {};
  expect(await entries('adopt-zone')).toEqual([
    { actor: two?.by, detail: { version: 2, zone: london.zone, source, digest, holdsFrom: decided } },
  ]);
  expect(digest).not.toBe(one?.digest);
  expect(clockIn(rule).facts).toContain(digest?.slice(0, 12));

  const [before, after] = [clockIn(old), clockIn(rule)];
  const last = instantPlus(decided, { seconds: -1 });
  expect(firstDisagreement(before, after, '2025-01-01T00:00:00Z', last)).toBeNull();
  const [from, to] = [decided, instantPlus(decided, { hours: 30 * 366 * 24 })];
  expect(firstDisagreement(young, after, from, to)).toBeNull();
  expect(firstDisagreement(before, after, from, to)).toMatchObject({
    at: decided,
    offsets: [expect.any(Number), 5 * HOUR],
  });
  expectSameUntil(old, rule, decided);

  expect(await check()).toEqual([]);
  expect(await tables()).toHaveLength(2);
});

describe.each(['month', 'week', 'day', 'hour'] as const)('a job by the %s', (period) => {
  const first = { month: '2026-01', week: '2026-W40', day: '2026-10-01', hour: '2026-11-30T00' }[period];

  test.each([
    ['forward', 5],
    ['back', -5],
    ['back by half an hour', -0.5],
    ['forward by a day, over the date line', 24],
    ['back by a day', -24],
  ])('whose clock is put %s keeps its decided periods, and the next one touches them', async (_way, hours) => {
    await installTinyJob(db, {
      ...london,
      period,
      first,
      calendar: { minute: 30, ...(period === 'hour' ? {} : { hour: 2 }) },
    });
    const old = await ruleNow();
    const decided = decidedUntil(old, await clockOf(db));
    await learn('2026-02-01T00:00:00Z', hours);
    expect(await check()).toHaveLength(1);
    expectSameUntil(old, await ruleNow(), decided);
    const [, table] = await tables();
    expect(compareInstants(table?.from ?? '', decided)).toBeGreaterThanOrEqual(0);
    expect(await check()).toEqual([]);
    expect(await tables()).toHaveLength(2);
  });
});

/** That both rules bound each period alike which ends by an instant, and that the periods of the younger one touch beyond it. */
function expectSameUntil(old: JobRule, young: JobRule, decided: Instant): void {
  const [before, after] = [periodCalendar(old), periodCalendar(young)];
  // A clock that is put by a day has come to its new reading after two; some months and weeks must follow too.
  const days = old.period === 'hour' ? 5 : 60;
  const last = periodContaining(instantPlus(decided, { hours: days * 24 }), after);
  const periods = periodsBetween(existingPeriod(old.first, before), last, after).map((name) =>
    periodBounds(name, after),
  );
  const kept = periods.filter(({ ends }) => compareInstants(ends, decided) <= 0);
  expect(kept.at(-1)?.ends).toBe(decided);
  for (const { facts: _facts, ...bounds } of kept) expect(periodBounds(bounds.period, before)).toMatchObject(bounds);
  for (const [n, { starts, ends, period }] of periods.entries()) {
    expect([period, ends]).toEqual([period, periods[n + 1]?.starts ?? ends]);
    expect(compareInstants(starts, ends)).toBe(-1);
    expect(periodContaining(starts, after)).toBe(period);
    expect(periodContaining(instantPlus(ends, { seconds: -1 }), after)).toBe(period);
  }
}
