import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { psqlCommand } from '../../src/app/database-url.ts';
import { databaseUser } from '../../src/embedded/database-user.ts';
import { freePort } from '../../src/embedded/ports.ts';
import { type EmbeddedPostgres, startPostgres } from '../../src/embedded/postgres.ts';

let dir: string;
let servers: EmbeddedPostgres[] = [];
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'onceper-pg-'));
  chmodSync(dir, 0o755);
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  servers = [];
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Most tests start on the same data, which the first of them makes. */
async function start(folder = path.join(dir, 'postgres'), durable = false): Promise<EmbeddedPostgres> {
  const server = await startPostgres({ dir: folder, port: await freePort(), durable });
  servers.push(server);
  return server;
}

async function isWritable(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('create table if not exists written (at timestamptz)');
    return true;
  } finally {
    await client.end();
  }
}

test('an initdb that was killed half-way leaves nothing that a later start takes for data', async () => {
  const halfway = path.join(dir, 'postgres', 'initdb-of-a-killed-start');
  mkdirSync(path.join(halfway, 'base'), { recursive: true });
  writeFileSync(path.join(halfway, 'PG_VERSION'), '18\n');
  const server = await start();
  expect(await isWritable(server.url)).toBe(true);
  expect(readdirSync(path.join(dir, 'postgres'))).not.toContain('initdb-of-a-killed-start');
});

test('data of another major version are refused by name and left as they are', async () => {
  const data = path.join(dir, 'older', 'data');
  mkdirSync(data, { recursive: true });
  writeFileSync(path.join(data, 'PG_VERSION'), '17\n');
  await expect(start(path.join(dir, 'older'))).rejects.toMatchObject({
    code: 'wrong_postgres_version',
    message: `the data in ${data} are of PostgreSQL 17, and this is PostgreSQL 18`,
    at: data,
  });
  expect(readdirSync(data)).toEqual(['PG_VERSION']);
});

test('a durable server that was killed with SIGKILL starts again with what it had committed', async () => {
  const durable = () => start(path.join(dir, 'postgres'), true);
  const first = await durable();
  await isWritable(first.url);
  process.kill(first.pid, 'SIGKILL');
  await first.exited;
  const second = await durable();
  const client = new pg.Client({ connectionString: second.url });
  await client.connect();
  const found = await client.query(`select to_regclass('written') is not null as kept`);
  await client.end();
  expect(found.rows).toEqual([{ kept: true }]);
});

test('a lock file whose pid some other process has got since does not stop the start', async () => {
  const first = await start();
  const lockFile = path.join(first.dataDir, 'postmaster.pid');
  const lines = readFileSync(lockFile, 'utf8').split('\n');
  await first.stop();
  const user = databaseUser();
  const innocent = spawn('sleep', ['600'], { stdio: 'ignore', cwd: '/', ...user });
  try {
    writeFileSync(lockFile, [String(innocent.pid), ...lines.slice(1)].join('\n'), { mode: 0o644 });
    const second = await start();
    expect(await isWritable(second.url)).toBe(true);
    expect(innocent.exitCode).toBeNull();
  } finally {
    innocent.kill('SIGKILL');
  }
});

test('data that a running server uses are refused with its pid, not with the advice to delete a file', async () => {
  const first = await start();
  await expect(start()).rejects.toMatchObject({
    code: 'postgres_running',
    message: `a PostgreSQL server (pid ${first.pid}) already runs on ${first.dataDir}`,
  });
});

test('a server that can’t start says what its own log said last', async () => {
  const first = await start();
  await first.stop();
  writeFileSync(path.join(first.dataDir, 'postgresql.auto.conf'), 'shared_buffers = nonsense\n');
  await expect(start()).rejects.toMatchObject({
    code: 'postgres_not_started',
    message: expect.stringContaining('shared_buffers'),
    remedy: expect.stringContaining('postgres.log'),
  });
  rmSync(path.join(first.dataDir, 'postgresql.auto.conf'));
});

async function asking(url: string, statement: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await client.query(statement);
  } finally {
    await client.end();
  }
}

test('nobody is let in without the password, which is its owner’s file and works for psql', async () => {
  const server = await start();
  const file = path.join(dir, 'postgres.pgpass');
  const { password } = new URL(server.url);
  expect(password).toMatch(/^[\w-]{43}$/);
  expect(readFileSync(file, 'utf8')).toBe(`127.0.0.1:*:*:onceper:${password}\n`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  for (const [wrong, code] of [
    ['', undefined],
    [':guessed', '28P01'],
  ] as const) {
    const url = server.url.replace(`:${password}`, wrong);
    const thrown = await asking(url, 'select 1').then(
      () => 'was let in',
      (error: unknown) => error,
    );
    expect(thrown).toBeInstanceOf(Error);
    if (code !== undefined) expect(thrown).toMatchObject({ code });
  }
  const stored = await asking(server.url, `select rolpassword from pg_authid where rolname = 'onceper'`);
  expect(stored.rows).toEqual([{ rolpassword: expect.stringMatching(/^SCRAM-SHA-256\$/) }]);
});

test.skipIf(spawnSync('/bin/sh', ['-c', 'command -v psql']).status !== 0)(
  'psql gets in by the line that up prints (psql is on this machine)',
  async () => {
    const server = await start();
    const line = psqlCommand(server.url, path.join(dir, 'postgres.pgpass'));
    expect(line).not.toContain(new URL(server.url).password);
    const said = execFileSync('/bin/sh', ['-c', `${line} --no-psqlrc -Atc 'select current_user'`], {
      encoding: 'utf8',
    });
    expect(said).toBe('onceper\n');
  },
);

test('data of a release that admitted everybody keep their rows and get a password at their next start', async () => {
  const first = await start();
  await isWritable(first.url);
  await first.stop();
  // As an earlier release left them.
  rmSync(path.join(dir, 'postgres.pgpass'));
  writeFileSync(path.join(first.dataDir, 'pg_hba.conf'), 'host all all 127.0.0.1/32 trust\n');
  const second = await start();
  expect(new URL(second.url).password).not.toBe(new URL(first.url).password);
  expect((await asking(second.url, `select to_regclass('written') is not null as kept`)).rows).toEqual([
    { kept: true },
  ]);
  await expect(asking(second.url.replace(/:[\w-]{43}@/, ':guessed@'), 'select 1')).rejects.toMatchObject({
    code: '28P01',
  });
});

test('a password that is not that of the data is said with its file, at once', async () => {
  const first = await start();
  await first.stop();
  const file = path.join(dir, 'postgres.pgpass');
  const kept = readFileSync(file, 'utf8');
  writeFileSync(file, '127.0.0.1:*:*:onceper:another\n');
  await expect(start()).rejects.toMatchObject({
    code: 'postgres_not_started',
    message: expect.stringContaining(`the password in ${file} is not that of the data`),
  });
  writeFileSync(file, kept);
});

test.skipIf(userInfo().uid !== 0)(
  'below a folder that only root can enter, the data lie where the database’s user can, and a link says where',
  async () => {
    const closed = path.join(dir, 'closed');
    mkdirSync(closed, { mode: 0o700 });
    const server = await start(path.join(closed, 'postgres'));
    const place = realpathSync(path.join(closed, 'postgres'));
    try {
      expect(await isWritable(server.url)).toBe(true);
      expect(lstatSync(path.join(closed, 'postgres')).isSymbolicLink()).toBe(true);
      expect(place).toMatch(/^\/var\/lib\/onceper\/data-/);
      expect(server.dataDir).toBe(path.join(place, 'data'));
    } finally {
      await server.stop();
      rmSync(place, { recursive: true, force: true });
    }
  },
);
