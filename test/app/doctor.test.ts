import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { endedPeriods } from '../../src/jobs/due.ts';
import { parseRule } from '../../src/jobs/rule.ts';
import { clockOf } from '../../src/store/database.ts';
import { createStory, type Story } from '../ops/story.ts';
import { createTestDatabase } from '../support/database.ts';
import { forced } from '../support/forced.ts';
import { testPool } from '../support/ledger.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { createTinyJob, tinyRule } from '../support/tiny-job.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';
import { documentOf, type ErrorDocument, NOBODY, typed } from './command-line.ts';

interface Row {
  readonly check: string;
  readonly state: string;
  readonly detail: string;
  readonly remedy: string | null;
}

const gaps: Record<string, bigint> = { GBP: 0n };
const jobs = [{ ...createTinyJob(2), ledgerGaps: () => Promise.resolve({ ...gaps }) }];
let story: Story;
let namespace: TestNamespace;
let environment: Record<string, string>;
let period: string;
let postgres: string;
let worker: TestWorker | undefined;

beforeAll(async () => {
  const clock = await createTestDatabase();
  const db = testPool(clock.url, 1);
  period = endedPeriods(parseRule(tinyRule(), 'tiny'), await clockOf(db)).at(-1) ?? '';
  const { rows } = await db.query<{ shown: string }>(
    `select split_part(current_setting('server_version'), ' ', 1) as shown`,
  );
  postgres = `PostgreSQL ${rows[0]?.shown}`;
  await db.close();
  await clock.drop();
  story = await createStory({ rule: { zone: 'UTC', first: period, calendar: { dayOfMonth: 1, hour: 0, minute: 0 } } });
  namespace = await createTestNamespace();
  environment = {
    DATABASE_URL: story.url,
    TEMPORAL_ADDRESS: namespace.address,
    TEMPORAL_NAMESPACE: namespace.namespace,
    ONCEPER_GATEWAY_URL: 'http://127.0.0.1:1',
  };
});

afterAll(async () => {
  await worker?.stop();
  await story.drop();
});

async function doctor(given: Readonly<Record<string, string>> = environment) {
  const printed = await typed(['doctor', '--json'], given, { jobs });
  const { ok, checks } = documentOf<{ ok: boolean; checks: Row[] }>(printed);
  return { exit: printed.code, ok, checks, row: (check: string) => checks.find((row) => row.check === check) };
}

describe('doctor', () => {
  test('on servers alone finds no worker, no schedule and a missing period, each with its remedy, and exits 6', async () => {
    const { exit, ok, row, checks } = await doctor();
    expect({ exit, ok }).toEqual({ exit: 6, ok: false });
    expect(row('database')).toMatchObject({ state: 'ok', detail: expect.stringContaining(postgres) });
    expect(row('temporal')).toMatchObject({
      state: 'ok',
      detail: expect.stringContaining('closed workflows kept for 1 day'),
    });
    expect(row('migrations')).toMatchObject({ state: 'ok' });
    expect(row('search attributes')).toMatchObject({ state: 'warn', remedy: expect.stringContaining('worker') });
    expect(row('worker')).toMatchObject({ state: 'fail', remedy: 'npx onceper worker' });
    expect(row('schedule of tiny')).toMatchObject({ state: 'fail', remedy: 'npx onceper schedule apply tiny' });
    expect(row('periods of tiny')).toMatchObject({
      state: 'fail',
      detail: `1 missing: ${period}`,
      remedy: expect.stringMatching(/^npx temporal schedule backfill --schedule-id tiny .* --overlap-policy AllowAll$/),
    });
    for (const { state, remedy } of checks) expect(remedy === null).toBe(state === 'ok');
  });

  test('with a worker, a schedule and nothing missing finds nothing, and exits 0', async () => {
    worker = await startTestWorker({ namespace, databaseUrl: story.url, jobs });
    expect((await typed(['schedule', 'apply', 'tiny'], environment, { jobs })).code).toBe(0);
    await story.settle(period);
    const { exit, checks } = await doctor();
    expect(checks.filter(({ state }) => state !== 'ok')).toEqual([]);
    expect(exit).toBe(0);
  });

  test('finds drift, a pause, books that are off, effects for a person, and overdue delivery', async () => {
    const schedule = worker?.client.schedule.getHandle('tiny');
    await schedule?.pause('audit');
    expect((await doctor()).row('schedule of tiny')).toMatchObject({
      state: 'warn',
      detail: expect.stringContaining('"audit"'),
    });
    await schedule?.update((found) => ({ ...found, policies: { ...found.policies, overlap: 'SKIP' } }));
    expect((await doctor()).row('schedule of tiny')).toMatchObject({
      state: 'fail',
      detail: 'drifted: overlap is SKIP, and should be ALLOW_ALL',
    });
    gaps['GBP'] = 5n;
    await story.db.query(`update onceper.outbox set due_at = clock_timestamp() - interval '1 hour'`);
    await forced(
      story.db,
      `update onceper.outbox set state = 'needs_attention' where number = (select min(number) from onceper.outbox)`,
    );
    const { exit, row } = await doctor();
    expect(row('books of tiny')).toMatchObject({ state: 'fail', detail: 'GBP is off by 5 minor units' });
    expect(row('effects')).toMatchObject({ state: 'fail', remedy: `npx onceper outbox list --key tiny:${period}` });
    expect(row('delivery')).toMatchObject({
      state: 'warn',
      detail: expect.stringContaining('1 effect has been due'),
      remedy: 'npx onceper relay',
    });
    expect(exit).toBe(6);
  });

  test('without a database exits 1, and still looks at all else', async () => {
    const { exit, row } = await doctor({ ...environment, DATABASE_URL: `postgres://u:secret@${NOBODY}/x` });
    expect(exit).toBe(1);
    expect(row('database')).toMatchObject({ state: 'fail', detail: expect.stringContaining("can't be reached") });
    expect(row('temporal')).toMatchObject({ state: 'ok' });
    expect(row('periods of tiny')).toBeUndefined();
  });

  test('says of a counterparty over plain http, and of a receiver inside, what a relay would say at its start', async () => {
    const { exit, row } = await doctor({
      ...environment,
      ONCEPER_GATEWAY_URL: 'http://bank.example',
      ONCEPER_RECEIVERS: 'archive=http://10.20.0.7/',
    });
    expect(row('gateway')).toMatchObject({ state: 'fail', remedy: expect.stringContaining('_PLAIN_HTTP=anywhere') });
    expect(row('receivers')).toMatchObject({ state: 'fail', remedy: expect.stringContaining('_RECEIVER_NETWORKS') });
    expect(exit).toBe(6);
  });

  test('prints a table for a person, in colour on a terminal unless NO_COLOR is set', async () => {
    const plain = await typed(['doctor'], environment, { jobs });
    expect(plain.out).toMatch(new RegExp(`^ok {4}database {2,}${postgres.replaceAll('.', '[.]')}`, 'm'));
    expect(plain.out).toContain('→ npx onceper schedule apply tiny');
    const onTerminal = { jobs, isTerminal: true };
    expect((await typed(['doctor'], environment, onTerminal)).out).toContain('\u001b[');
    expect((await typed(['doctor'], { ...environment, NO_COLOR: '1' }, onTerminal)).out).not.toContain('\u001b[');
  });
});

describe('a database without a schema', () => {
  const name = `${inject('databasePrefix')}_${randomUUID().replaceAll('-', '')}`;
  const url = new URL(inject('serverUrl'));

  beforeAll(async () => {
    const admin = new pg.Client({ connectionString: url.href });
    await admin.connect();
    await admin.query(`create database ${name}`);
    await admin.end();
    url.pathname = `/${name}`;
  });

  test('is named by doctor with the migrations that it lacks, and by every other command with what to do', async () => {
    const given = { ...environment, DATABASE_URL: url.href };
    const { exit, row } = await doctor(given);
    expect(row('migrations')).toMatchObject({
      state: 'fail',
      detail: expect.stringMatching(/^\d+ pending: 0001_/),
      remedy: 'npx onceper migrate',
    });
    expect(exit).toBe(6);
    const shown = await typed(['show', 'tiny:2026-01', '--json'], given, { jobs });
    expect(documentOf<ErrorDocument>(shown).error).toMatchObject({
      code: 'not_migrated',
      remedy: 'npx onceper migrate',
    });
    expect(shown.code).toBe(1);
  });
});

test('a database of a later build is named by doctor and by migrate, with the migrations that this build does not know', async () => {
  const later = await createTestDatabase();
  const client = new pg.Client({ connectionString: later.url });
  await client.connect();
  await client.query(`insert into onceper_migration (name, batch, migration_time) values ('9999_later.sql', 9, now())`);
  await client.end();
  const given = { ...environment, DATABASE_URL: later.url };
  const said = 'the database is newer than this build, which does not know 9999_later.sql';
  const { exit, row } = await doctor(given);
  expect(row('migrations')).toMatchObject({ state: 'fail', detail: said });
  expect(exit).toBe(6);
  const migrated = await typed(['migrate', '--json'], given, { jobs });
  expect(documentOf<ErrorDocument>(migrated).error).toMatchObject({ code: 'database_newer', message: said });
  expect(migrated.code).toBe(1);
  await later.drop();
});
