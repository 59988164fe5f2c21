import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSettlementJob } from '../../src/jobs/settlement/settlement.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { as, documentOf, type ErrorDocument, NOBODY, typed } from './command-line.ts';
import { MONTHLY_JOB } from './served.ts';

const jobs = [createSettlementJob()];
const LINE = [
  'backfill',
  'request',
  'settlement',
  '--from',
  '2026-08',
  '--to',
  '2026-08',
  '--reason',
  'missed',
  '--json',
];
let database: TestDatabase;
let db: Database;
/** Logins of a server that does not say it serves one machine: a person's, and one that may break the glass. */
let person: string;
let firefighter: string;

beforeAll(async () => {
  database = await createTestDatabase();
  db = openDatabase({ url: database.url, name: 'test', max: 1 });
  for (const { text, values } of MONTHLY_JOB) await db.query(text, values);
  person = await createLogin('person', 'onceper_operator');
  firefighter = await createLogin('firefighter', 'onceper_break_glass');
});

afterAll(async () => {
  await db.close();
  const admin = openDatabase({ url: database.url, name: 'test', max: 1 });
  for (const url of [person, firefighter]) {
    const { username } = new URL(url);
    await admin.query(`drop owned by ${username}`);
    await admin.query(`drop role ${username}`);
  }
  await admin.close();
  await database.drop();
});

async function createLogin(name: string, group: string): Promise<string> {
  const role = `${database.name}_${name}`.slice(-60).replace(/^[^a-z]+/, '');
  await db.query(`create role ${role} login password 'secret' in role ${group}`);
  await db.query(`alter role ${role} set onceper.embedded = 'off'`);
  const url = new URL(database.url);
  url.username = role;
  url.password = 'secret';
  return url.href;
}

const type_ = (url: string, given: Readonly<Record<string, string>> = {}) =>
  typed(LINE, { DATABASE_URL: url, TEMPORAL_ADDRESS: NOBODY, ...given }, { jobs });

async function broken(): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { rows } = await db.query<Record<string, unknown>>(
    `select actor, detail::jsonb as detail from onceper.audit where verb = 'break-glass' order by seq`,
  );
  return rows;
}

test('what writes is refused beside the embedded servers, and what reads is not', async () => {
  const refused = await type_(person);
  expect([refused.code, documentOf<ErrorDocument>(refused).error.code]).toEqual([3, 'server_needed']);
  const read = await typed(['periods', 'settlement'], { DATABASE_URL: person }, { jobs });
  expect([read.code, read.err]).toEqual([6, '']);
});

test('the glass is broken by no login but those that may', async () => {
  const refused = await type_(person, { ONCEPER_BREAK_GLASS: 'in a hurry' });
  expect([refused.code, documentOf<ErrorDocument>(refused).error.code]).toEqual([3, 'break_glass_refused']);
  const reject = ['approvals', 'reject', 'a-1', '--reason', 'x', '--json'];
  const rejected = await typed(reject, { DATABASE_URL: person }, { jobs });
  expect(documentOf<ErrorDocument>(rejected).error.code).toBe('server_needed');
  expect(await broken()).toEqual([]);
});

test('broken, it is in the audit before anything is done, on standard error and in doctor', async () => {
  const login = new URL(firefighter).username;
  const done = await type_(firefighter, { ONCEPER_BREAK_GLASS: 'server down', ONCEPER_SERVER: `http://${NOBODY}` });
  expect(done.code).toBe(0);
  expect(done.err).toMatch(/^GLASS BROKEN: backfill request .* user:tester .*server down$/m);
  const entry = { detail: { reason: 'server down', command: 'backfill request', login } };
  expect(await broken()).toEqual([{ actor: 'user:tester', ...entry }]);
  // What is refused afterwards has broken it too.
  await typed(['approvals', 'execute', 'nope'], { DATABASE_URL: firefighter, ONCEPER_BREAK_GLASS: 'again' }, { jobs });
  expect(await broken()).toHaveLength(2);
  const doctor = await typed(['doctor', '--json'], { DATABASE_URL: database.url, TEMPORAL_ADDRESS: NOBODY }, { jobs });
  expect(documentOf<{ checks: unknown[] }>(doctor).checks).toContainEqual(
    expect.objectContaining({
      check: 'break_glass',
      state: 'warn',
      detail: expect.stringContaining('broken 2 times') as string,
    }),
  );
});

test('without a token it is broken under the name that the machine has for who types', async () => {
  const { ONCEPER_TOKEN_KEY = '' } = await as('x');
  await type_(firefighter, { ONCEPER_BREAK_GLASS: 'no token', ONCEPER_TOKEN: '', ONCEPER_TOKEN_KEY });
  expect((await broken()).at(-1)).toMatchObject({ actor: expect.stringMatching(/^break-glass:./) as string });
});
