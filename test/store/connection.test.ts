import { chmodSync, chownSync, copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../src/embedded/ports.ts';
import { type EmbeddedPostgres, startPostgres } from '../../src/embedded/postgres.ts';
import { connectionOf } from '../../src/store/connection.ts';
import { openDatabase } from '../../src/store/database.ts';
import { migrate, migrationStanding } from '../../src/store/migrate.ts';
import { waitFor } from '../support/wait.ts';

const FIXTURES = path.join(import.meta.dirname, 'tls');
const AUTHORITY = path.join(FIXTURES, 'authority.pem');

/** What an address asks of the server: nothing, encryption, a known authority, or that and the host's own name. */
function asked(address: string): string {
  const { ssl } = connectionOf(address);
  if (ssl === false) return 'nothing';
  if (ssl.rejectUnauthorized === false) return 'encryption';
  const other = { subject: { CN: 'another.example' }, subjectaltname: 'DNS:another.example' };
  const refused = ssl.checkServerIdentity?.('another.example', other as Parameters<typeof ssl.checkServerIdentity>[1]);
  return refused === undefined ? 'authority' : 'authority and name';
}

describe('what is asked of the server', () => {
  test.each([
    ['postgres://u:p@127.0.0.1:5432/x', 'nothing'],
    ['postgres://u:p@localhost/x', 'nothing'],
    ['postgres://u:p@%2Frun%2Fpostgresql/x', 'nothing'],
    ['postgres://u:p@/x?host=/run/postgresql', 'nothing'],
    ['postgres://u:p@db.example/x', 'authority and name'],
    ['postgres://u:p@10.0.0.7/x', 'authority and name'],
    ['postgres://u:p@localhost/x?host=db.example', 'authority and name'],
    ['postgres://u:p@127.0.0.1.example/x', 'authority and name'],
    ['postgres://u:p@db.example/x?sslmode=disable', 'nothing'],
    ['postgres://u:p@db.example/x?sslmode=require', 'encryption'],
    [`postgres://u:p@db.example/x?sslmode=require&sslrootcert=${AUTHORITY}`, 'authority'],
    [`postgres://u:p@db.example/x?sslmode=verify-ca&sslrootcert=${AUTHORITY}`, 'authority'],
    [`postgres://u:p@127.0.0.1/x?sslmode=verify-full`, 'authority and name'],
  ])('of %s is %s', (address, expected) => {
    expect(asked(address)).toBe(expected);
  });

  test.each([
    ['sslmode=prefer', /sslmode=prefer would give the password to a server that says it knows no TLS/],
    ['sslmode=allow', /sslmode=allow would give the password/],
    ['sslmode=full', /sslmode=full is unknown/],
    ['ssl=true', /ssl is not understood/],
    ['options=-c%20TimeZone%3DEurope/London', /options would replace the settings of each session/],
    ['sslmode=verify-full&sslrootcert=/nowhere.pem', /sslrootcert can't be read: ENOENT/],
  ])('can’t be %s', (parameters, message) => {
    expect(() => connectionOf(`postgres://u:p@db.example/x?${parameters}`)).toThrow(message);
  });
});

test.each([
  ['postgres://u:hush#hush@db.example:5432/x', /unescaped #/],
  ['postgres://u:hush/hush@db.example:5432/x', /unescaped \//],
  ['postgres://u:hush?hush@db.example:5432/x', /unescaped \?/],
  ['postgres://u:hush%zz@db.example:5432/x', /% that begins no escaped character/],
  ['postgres://u:hush@db.example:99999/x', /99999 is no port/],
  ['postgres://u:hush@db.example:5432/x#', /unescaped #/],
  ['mysql://u:hush@db.example/x', /no PostgreSQL address/],
])('the address %s is refused by what is wrong with it, without its password', (address, message) => {
  const thrown = (() => {
    try {
      return connectionOf(address, 'DATABASE_URL');
    } catch (error) {
      return error;
    }
  })();
  expect(thrown).toMatchObject({
    code: 'bad_configuration',
    at: 'DATABASE_URL',
    message: expect.stringMatching(message),
  });
  expect(JSON.stringify([thrown, String(thrown)])).not.toContain('hush');
});

describe('a server', () => {
  let dir: string;
  let server: EmbeddedPostgres;
  beforeAll(async () => {
    dir = mkdtempSync(path.join(tmpdir(), 'onceper-tls-'));
    chmodSync(dir, 0o755);
    server = await startPostgres({ dir: path.join(dir, 'postgres'), port: await freePort(), durable: false });
  });
  afterAll(async () => {
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  /** The server's address with another host and parameters. */
  const address = (parameters: string, host = '127.0.0.1') => `${server.url.replace('127.0.0.1', host)}?${parameters}`;

  async function encrypted(url: string): Promise<boolean | undefined> {
    const db = openDatabase({ url, name: 'tls', max: 1 });
    try {
      const { rows } = await db.query<{ ssl: boolean }>('select ssl from pg_stat_ssl where pid = pg_backend_pid()');
      return rows[0]?.ssl;
    } finally {
      await db.close();
    }
  }

  /** Turns TLS on with a certificate; a server reads it anew when it is told. */
  async function useCertificate(name: string): Promise<void> {
    const { uid, gid } = statSync(server.dataDir);
    for (const [from, to] of [
      [name, 'server.crt'],
      ['server.key', 'server.key'],
    ] as const) {
      const file = path.join(server.dataDir, to);
      copyFileSync(path.join(FIXTURES, from), file);
      chmodSync(file, 0o600);
      chownSync(file, uid, gid);
    }
    const db = openDatabase({ url: server.url, name: 'tls', max: 1 });
    await db.query(`alter system set ssl = on`);
    await db.query('select pg_reload_conf()');
    await db.close();
  }

  test('without TLS is said to be one', async () => {
    await expect(encrypted(address('sslmode=verify-full'))).rejects.toMatchObject({
      code: 'database_no_tls',
      message: 'the database’s server knows no TLS, so that it could be anybody',
      remedy: expect.stringContaining('sslmode=disable'),
    });
    await expect(migrate(address('sslmode=verify-full'))).rejects.toMatchObject({ code: 'database_no_tls' });
    await expect(migrationStanding(address('sslmode=verify-full'))).rejects.toMatchObject({ code: 'database_no_tls' });
  });

  test('with a certificate of a known authority and its own name is let in, by the migrations too', async () => {
    await useCertificate('server.pem');
    const full = address(`sslmode=verify-full&sslrootcert=${AUTHORITY}`);
    await waitFor(() => encrypted(full).catch(() => false), { what: 'the server to turn TLS on' });
    expect(await encrypted(full)).toBe(true);
    expect(await migrationStanding(full)).toMatchObject({ unknown: [] });
    expect(await encrypted(address('sslmode=require'))).toBe(true);
    expect(await encrypted(address('sslmode=disable'))).toBe(false);
  });

  test('with a certificate of another name is refused, unless only its authority is asked', async () => {
    const parameters = (mode: string) => `sslmode=${mode}&sslrootcert=${AUTHORITY}`;
    await expect(encrypted(address(parameters('verify-full'), 'localhost'))).rejects.toMatchObject({
      code: 'database_certificate',
      message: expect.stringMatching(/of another name: .*localhost.*ERR_TLS_CERT_ALTNAME_INVALID/),
    });
    expect(await encrypted(address(parameters('verify-ca'), 'localhost'))).toBe(true);
  });

  test('of an authority that nobody knows, or of none, is refused by that', async () => {
    await expect(encrypted(address('sslmode=verify-full'))).rejects.toMatchObject({
      code: 'database_certificate',
      message: expect.stringContaining('an authority that nobody here trusts'),
      remedy: expect.stringContaining('sslrootcert'),
    });
    await useCertificate('self.pem');
    const full = () => encrypted(address('sslmode=verify-full'));
    const said = () => full().catch((error: unknown) => String(error));
    await waitFor(async () => String(await said()).includes('itself'), {
      what: 'the server to show the other certificate',
    });
    await expect(full()).rejects.toMatchObject({
      code: 'database_certificate',
      message: expect.stringContaining('signed by itself'),
    });
  });
});

test('a false server that says it knows no TLS is told nothing', async () => {
  const heard: Buffer[] = [];
  const listener = createServer((socket) => {
    socket.on('data', (data) => {
      heard.push(data);
      socket.write('N');
    });
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const bound = listener.address();
  const port = typeof bound === 'object' ? bound?.port : 0;
  const url = `postgres://u:hush@127.0.0.1:${port}/x?sslmode=verify-full`;
  const db = openDatabase({ url, name: 'tls', max: 1 });
  await expect(db.query('select 1')).rejects.toMatchObject({ code: 'database_no_tls' });
  await expect(migrate(url)).rejects.toMatchObject({ code: 'database_no_tls' });
  await db.close();
  await new Promise((resolve) => listener.close(resolve));
  // Eight bytes each: the question whether it knows TLS.
  expect(Buffer.concat(heard)).toHaveLength(16);
});
