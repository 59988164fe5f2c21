import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { faultOf } from '../../src/store/fault.ts';
import { migrate } from '../../src/store/migrate.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let role: string;
beforeAll(async () => {
  database = await createTestDatabase();
  role = `faulty_${randomUUID().slice(0, 8)}`;
  await asked(database.url, `create role ${role} login password 'right' connection limit 0`);
  await asked(database.url, `create role ${role}_reader login password 'right'`);
  await asked(database.url, `create role ${role}_shut nologin password 'right'`);
});
afterAll(async () => {
  for (const name of ['', '_reader', '_shut']) await asked(database.url, `drop role ${role}${name}`);
  await database.drop();
});

async function asked(url: string, statement: string): Promise<unknown> {
  const db = openDatabase({ url, name: 'fault', max: 1 });
  try {
    return await db.query(statement);
  } finally {
    await db.close();
  }
}

function as(
  user: string,
  password: string,
  changes: { readonly database?: string; readonly port?: string } = {},
): string {
  const url = new URL(database.url);
  Object.assign(url, { username: user, password });
  if (changes.database !== undefined) url.pathname = `/${changes.database}`;
  if (changes.port !== undefined) url.port = changes.port;
  return url.href;
}

/** A fault made for real, and what must be said of it. */
const FAULTS: readonly (readonly [string, () => Promise<unknown>, string, RegExp, RegExp])[] = [
  [
    'a wrong password',
    () => asked(as(`${role}_reader`, 'wrong'), 'select 1'),
    'database_password',
    /^the database refuses the password: password authentication failed for user ".*_reader" \(28P01\)$/,
    /correct user and password in DATABASE_URL/,
  ],
  [
    'a role that may not log in',
    () => asked(as(`${role}_shut`, 'right'), 'select 1'),
    'database_login',
    /does not let this user in: role ".*_shut" is not permitted to log in \(28000\)$/,
    /name a role that may log in/,
  ],
  [
    'a database that is not there',
    () => asked(as(`${role}_reader`, 'right', { database: 'nowhere' }), 'select 1'),
    'database_missing',
    /no such database: database "nowhere" does not exist \(3D000\)$/,
    /create it and then npx onceper migrate/,
  ],
  [
    'too many connections',
    () => asked(as(role, 'right'), 'select 1'),
    'too_many_connections',
    /takes no more connections: too many connections for role .* \(53300\)$/,
    /max_connections/,
  ],
  [
    'nobody who listens',
    () => asked(as(role, 'right', { port: '1' }), 'select 1'),
    'database_unreachable',
    /can't be reached: nobody listens there \(ECONNREFUSED\)$/,
    /npx onceper up/,
  ],
  [
    'a table that this login may not touch',
    () => asked(as(`${role}_reader`, 'right'), 'select * from onceper.action'),
    'permission_denied',
    /permission denied for schema onceper \(42501\)$/,
    /docs\/roles\.md/,
  ],
  [
    'a full disk',
    () => asked(database.url, `copy (select generate_series(1, 100000)) to '/dev/full'`),
    'database_full',
    /^the disk of the database is full \(53100\)$/,
    /free space/,
  ],
  [
    'a ledger that was never migrated',
    () => asked(as(`${role}_reader`, 'right', { database: 'postgres' }), 'select * from onceper.action'),
    'not_migrated',
    /lacks a table of this release \(42P01\)$/,
    /npx onceper migrate/,
  ],
  [
    'a table of somebody else’s',
    () => asked(database.url, 'select * from payout'),
    'database',
    /refused a statement: relation "payout" does not exist \(42P01\)$/,
    /log of the database/,
  ],
  [
    'a value that is missing',
    () => asked(database.url, 'insert into onceper.item (key) values (null)'),
    'constraint',
    /refused the write: null value in column "key" of relation "item" violates not-null constraint \(23502\)$/,
    /log of the database/,
  ],
  [
    'a write to a replica',
    () => asked(database.url, 'begin read only; create table public.t (); commit'),
    'database_read_only',
    /takes no writes/,
    /primary/,
  ],
  [
    'a migration with a wrong password',
    () => migrate(as(`${role}_reader`, 'wrong')),
    'database_password',
    /28P01/,
    /DATABASE_URL/,
  ],
];

test.each(FAULTS)('%s is said with its cause and what to do', async (_, make, code, message, remedy) => {
  const thrown = await make().then(
    () => null,
    (error: unknown) => error,
  );
  expect(thrown).toMatchObject({
    code,
    message: expect.stringMatching(message),
    remedy: expect.stringMatching(remedy),
  });
  expect(String(thrown)).not.toMatch(/right|wrong/);
});

test.each([
  ['ENOTFOUND', 'database_unreachable', /its host is not known/],
  ['EAI_AGAIN', 'database_unreachable', /its host is not known/],
  ['ETIMEDOUT', 'database_unreachable', /does not answer/],
  ['57P03', 'database_unreachable', /starts or stops/],
  ['CERT_HAS_EXPIRED', 'database_certificate', /out of date/],
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'database_certificate', /was refused/],
  ['53200', 'database_full', /memory or connections/],
  ['22P02', 'database', /^the database refused a statement \(22P02\)$/],
])('%s is %s, without what the server said of a value', (state, code, message) => {
  const fault = faultOf(Object.assign(new Error('invalid input: "4111 1111"'), { code: state }));
  expect(fault).toMatchObject({ code, message: expect.stringMatching(message) });
  expect(fault.message).not.toContain('4111');
});
