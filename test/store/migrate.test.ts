import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { migrate, migrationStanding } from '../../src/store/migrate.ts';
import { waitFor } from '../support/wait.ts';

let name: string;
let url: string;

async function onServer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('serverUrl') });
  await client.connect();
  await client.query(statement);
  await client.end();
}

async function rows<Row extends pg.QueryResultRow>(statement: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const answer = await client.query<Row>(statement);
  await client.end();
  return answer.rows;
}

beforeEach(async () => {
  name = `${inject('databasePrefix')}_${randomUUID().replaceAll('-', '')}`;
  await onServer(`create database ${name}`);
  const own = new URL(inject('serverUrl'));
  own.pathname = `/${name}`;
  url = own.href;
});
afterEach(() => onServer(`drop database if exists ${name} with (force)`));

test('three starters at once leave each migration recorded once', async () => {
  const { pending } = await migrationStanding(url);
  const applied = await Promise.all([migrate(url), migrate(url), migrate(url)]);
  expect(applied.flatMap((one) => one.applied)).toEqual(pending);
  const recorded = await rows<{ name: string }>('select name from onceper_migration order by id');
  expect(recorded.map((row) => row.name)).toEqual(pending);
  expect(await migrationStanding(url)).toEqual({ pending: [], unknown: [] });
});

test('a database that a later build migrated is newer, by name, and is left as it is', async () => {
  await migrate(url);
  await rows(
    `insert into onceper_migration (name, batch, migration_time) values ('9998_later.sql', 9, now()), ('9999_last.sql', 9, now())`,
  );
  expect(await migrationStanding(url)).toEqual({ pending: [], unknown: ['9998_later.sql', '9999_last.sql'] });
  await expect(migrate(url)).rejects.toMatchObject({
    code: 'database_newer',
    message: 'the database is newer than this build, which does not know 9998_later.sql, 9999_last.sql',
    remedy: expect.stringContaining('use the build that migrated it'),
  });
  expect(await rows('select 1 from onceper_migration_lock where is_locked = 1')).toEqual([]);
});

test('a migrator that died and left its lock row behind stops nobody', async () => {
  await migrate(url);
  await rows('update onceper_migration_lock set is_locked = 1');
  expect(await migrate(url)).toEqual({ applied: [] });
});

test('a file that fails is rolled back whole and named by the server, and the next start applies it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'onceper-migrations-'));
  try {
    writeFileSync(join(folder, '0001_one.sql'), 'create table one (a int); create table one (a int);');
    await expect(migrate(url, folder)).rejects.toMatchObject({
      code: 'migration_failed',
      message: expect.stringContaining('relation "one" already exists'),
    });
    expect(await rows(`select from pg_tables where tablename = 'one'`)).toEqual([]);
    writeFileSync(join(folder, '0001_one.sql'), 'create table one (a int);');
    expect(await migrate(url, folder)).toEqual({ applied: ['0001_one.sql'] });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a migration behind a long reader gives up in seconds and leaves live traffic alone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'onceper-migrations-'));
  const reader = new pg.Client({ connectionString: url });
  try {
    writeFileSync(join(folder, '0001_one.sql'), 'create table one (a int);');
    await migrate(url, folder);
    await reader.connect();
    await reader.query('begin');
    await reader.query('select from one');
    writeFileSync(join(folder, '0002_two.sql'), `set local lock_timeout = '300ms'; alter table one add column b int;`);
    const failed = expect(migrate(url, folder)).rejects.toMatchObject({ code: 'migration_failed' });
    await failed;
    await reader.query('rollback');
    expect(await waitFor(async () => (await migrate(url, folder)).applied, { what: 'the second try' })).toEqual([
      '0002_two.sql',
    ]);
  } finally {
    await reader.end();
    rmSync(folder, { recursive: true });
  }
});
