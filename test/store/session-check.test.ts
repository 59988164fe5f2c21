import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { createMessageReader } from '../../src/drills/postgres-messages.ts';
import { databaseUser } from '../../src/embedded/database-user.ts';
import { freePort } from '../../src/embedded/ports.ts';
import { openDatabase } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrate.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { waitFor } from '../support/wait.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** The test database at another port of this machine. */
function through(port: number): string {
  const url = new URL(database.url);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  return url.href;
}

/** What is said to whoever asks anything, by a pool of its own. */
async function said(url: string): Promise<unknown> {
  const db = openDatabase({ url, name: 'pooled', max: 2 });
  try {
    return await db.query('select 1 as one').then(
      () => 'was let in',
      (error: unknown) => error,
    );
  } finally {
    await db.close();
  }
}

test('a session of PostgreSQL’s own is let in, and keeps what we ask of it', async () => {
  const db = openDatabase({ url: database.url, name: 'session', max: 1 });
  const { rows } = await db.query<{ zone: string; path: string }>(
    `select current_setting('TimeZone') as zone, current_setting('search_path') as path`,
  );
  expect(rows).toEqual([{ zone: 'UTC', path: 'public' }]);
  await db.close();
});

describe('a stretch of network that drops the settings', () => {
  let proxy: Server;
  let port: number;
  beforeAll(async () => {
    const server = new URL(inject('serverUrl'));
    // A pooler that was told to ignore them: everything else reaches the server as it is.
    proxy = createServer((client) => {
      const upstream = connect(Number(server.port), server.hostname);
      let isFirst = true;
      const read = createMessageReader(({ bytes }) => {
        upstream.write(isFirst ? withoutOptions(bytes) : bytes);
        isFirst = false;
      });
      client
        .on('data', read)
        .on('close', () => upstream.destroy())
        .on('error', () => upstream.destroy());
      upstream
        .on('data', (data) => client.write(data))
        .on('close', () => client.destroy())
        .on('error', () => client.destroy());
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const bound = proxy.address();
    port = typeof bound === 'object' ? (bound?.port ?? 0) : 0;
    await alterDatabase(`set timezone = 'Europe/London'`);
  });
  afterAll(async () => {
    await alterDatabase('reset timezone');
    await new Promise((resolve) => proxy.close(resolve));
  });

  async function alterDatabase(change: string): Promise<void> {
    const db = openDatabase({ url: database.url, name: 'session', max: 1 });
    await db.query(`alter database ${database.name} ${change}`);
    await db.close();
  }

  /** The first message: its length, the protocol, names and values that end in NUL each, and a NUL. */
  function withoutOptions(bytes: Buffer): Buffer {
    const words = bytes.toString('utf8', 8).split('\0');
    const at = words.indexOf('options');
    const kept = at === -1 ? words : words.toSpliced(at, 2);
    const body = Buffer.from(kept.join('\0'));
    const head = Buffer.from(bytes.subarray(0, 8));
    head.writeInt32BE(8 + body.length);
    return Buffer.concat([head, body]);
  }

  test('is named with the setting that is not what was asked for, and nothing is done', async () => {
    const refused = {
      code: 'pooler_not_supported',
      message: expect.stringContaining('TimeZone was asked to be UTC, and is Europe/London'),
      remedy: expect.stringContaining('point DATABASE_URL at PostgreSQL itself'),
    };
    expect(await said(through(port))).toMatchObject(refused);
    await expect(migrate(through(port))).rejects.toMatchObject(refused);
  });
});

const pgbouncer = spawnSync('/bin/sh', ['-c', 'command -v pgbouncer'], { encoding: 'utf8' }).stdout.trim();

describe.skipIf(pgbouncer === '')('pgbouncer (it is on this machine)', () => {
  let dir: string;
  let running: ChildProcess | null = null;
  beforeAll(() => {
    dir = mkdtempSync(path.join(tmpdir(), 'onceper-pgbouncer-'));
    chmodSync(dir, 0o755);
  });
  afterEach(async () => {
    const ended = new Promise((resolve) => running?.once('exit', resolve));
    running?.kill('SIGKILL');
    if (running !== null) await ended;
    running = null;
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  async function start(settings: readonly string[]): Promise<string> {
    const server = new URL(inject('serverUrl'));
    const port = await freePort();
    const file = path.join(dir, `${port}.ini`);
    const users = path.join(dir, 'users.txt');
    writeFileSync(users, `"${server.username}" "${server.password}"\n`, { mode: 0o644 });
    const to = `host=127.0.0.1 port=${server.port} user=${server.username} password=${server.password}`;
    const own = [
      `listen_addr = 127.0.0.1`,
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = trust',
      `auth_file = ${users}`,
    ];
    writeFileSync(file, ['[databases]', `* = ${to}`, '[pgbouncer]', ...own, ...settings, ''].join('\n'), {
      mode: 0o644,
    });
    running = spawn(pgbouncer, ['-q', file], { stdio: 'ignore', ...(userInfo().uid === 0 ? databaseUser() : {}) });
    await waitFor(
      () =>
        new Promise<boolean>((resolve) => {
          const probe = connect(port, '127.0.0.1', () => resolve(true));
          probe.on('error', () => resolve(false)).on('connect', () => probe.destroy());
        }),
      { what: 'pgbouncer to listen' },
    );
    return through(port);
  }

  test('as it comes is named, and not taken for a lost connection', async () => {
    const url = await start(['pool_mode = transaction']);
    expect(await said(url)).toMatchObject({
      code: 'pooler_not_supported',
      message: expect.stringContaining('options'),
    });
    await expect(migrate(url)).rejects.toMatchObject({ code: 'pooler_not_supported' });
  });

  test.each([
    ['transaction', '0'],
    ['transaction', '1'],
    ['statement', '0'],
  ])('that ignores our settings is refused in %s mode, with round robin %s', async (mode, robin) => {
    const url = await start([
      `pool_mode = ${mode}`,
      `server_round_robin = ${robin}`,
      'ignore_startup_parameters = options',
    ]);
    expect(await said(url)).toMatchObject({ code: 'pooler_not_supported' });
  });

  test.each(['0', '1'])(
    'whose server has our settings anyway is given away by its sessions, with round robin %s',
    async (robin) => {
      const url = await start([
        'pool_mode = transaction',
        `server_round_robin = ${robin}`,
        'min_pool_size = 3',
        'ignore_startup_parameters = options',
      ]);
      const db = openDatabase({ url: database.url, name: 'session', max: 1 });
      await db.query(`alter database ${database.name} set search_path = public`);
      for (let at = 0; at < 5; at += 1) {
        expect(await said(url)).toMatchObject({
          code: 'pooler_not_supported',
          message: expect.stringMatching(/two connections share one session|changes its session/),
        });
      }
      await db.query(`alter database ${database.name} reset search_path`);
      await db.close();
    },
  );
});
