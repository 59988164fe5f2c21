import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { freePort } from '../../src/embedded/ports.ts';
import { startPostgres } from '../../src/embedded/postgres.ts';
import { startTemporal } from '../../src/embedded/temporal.ts';
import { cacheFolder, findTemporalCli } from '../../src/embedded/temporal-cli.ts';
import { migrate } from '../../src/store/migrate.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** A role that may create databases; its own database is not to be written to. */
    readonly serverUrl: string;
    /** The server's major version. */
    readonly serverMajor: string;
    /** The migrated database that test databases are cloned from; nobody may be connected to it. */
    readonly templateDatabase: string;
    /** Begins the name of every database of this run, so that teardown drops those and no others. */
    readonly databasePrefix: string;
    readonly temporalAddress: string;
    /** The file of the Temporal CLI. */
    readonly temporalCli: string;
    /** Where the first file that starts a worker writes the bundle of the workflows, for those after it. */
    readonly bundleFile: string;
  }
}

function valueOf<T>(settled: PromiseSettledResult<T>): T {
  if (settled.status === 'rejected') throw settled.reason;
  return settled.value;
}

type Stop = () => Promise<void>;

/** Starts one PostgreSQL and one Temporal for the whole run, or takes those of DATABASE_URL and TEMPORAL_ADDRESS. */
export async function setup(project: TestProject): Promise<Stop> {
  const dir = mkdtempSync(path.join(tmpdir(), 'onceper-test-'));
  // The database's user must get in when we are root.
  chmodSync(dir, 0o755);
  const stops: Stop[] = [async () => rmSync(dir, { recursive: true, force: true })];
  const stopAll: Stop = async () => {
    for (const stop of stops.toReversed()) await stop();
  };
  try {
    // Settled, not all: when one fails, the other must have come as far as to be stopped.
    const [database, dev] = await Promise.allSettled([providedDatabase(dir, stops), providedTemporal(dir, stops)]);
    const serverUrl = valueOf(database);
    const temporal = valueOf(dev);
    const databasePrefix = `onceper_test_${randomUUID().slice(0, 8)}`;
    stops.push(() => dropDatabases(serverUrl, databasePrefix));
    const templateDatabase = `${databasePrefix}_template`;
    await makeTemplate(serverUrl, templateDatabase);
    project.provide('serverUrl', serverUrl);
    project.provide('serverMajor', await majorOf(serverUrl));
    project.provide('templateDatabase', templateDatabase);
    project.provide('databasePrefix', databasePrefix);
    project.provide('temporalAddress', temporal.address);
    project.provide('temporalCli', temporal.cli);
    project.provide('bundleFile', path.join(dir, 'workflows.js'));
  } catch (error) {
    await stopAll();
    throw error;
  }
  return stopAll;
}

async function providedDatabase(dir: string, stops: Stop[]): Promise<string> {
  const given = process.env['DATABASE_URL'];
  if (given !== undefined && given !== '') {
    // Workers of the tests are the role that makes their databases.
    await onServer(given, (client) => client.query(`alter role current_user set onceper.embedded = 'on'`));
    stops.push(() =>
      onServer(given, async (client) => void (await client.query('alter role current_user reset onceper.embedded'))),
    );
    return given;
  }
  const server = await startPostgres({ dir: path.join(dir, 'postgres'), port: await freePort(), durable: false });
  stops.push(server.stop);
  return server.url;
}

async function providedTemporal(dir: string, stops: Stop[]): Promise<{ address: string; cli: string }> {
  const cli = await findTemporalCli({
    explicit: process.env['TEMPORAL_CLI'] ?? null,
    path: process.env['PATH'] ?? '',
    cacheDir: cacheFolder(process.env['XDG_CACHE_HOME'] ?? null),
  });
  const given = process.env['TEMPORAL_ADDRESS'];
  if (given !== undefined && given !== '') return { address: given, cli: cli.file };
  const server = await startTemporal({
    cli: cli.file,
    port: await freePort(),
    uiPort: null,
    databaseFile: null,
    namespace: 'default',
    logFile: path.join(dir, 'temporal.log'),
  });
  stops.push(server.stop);
  return { address: server.address, cli: cli.file };
}

function majorOf(serverUrl: string): Promise<string> {
  return onServer(serverUrl, async (client) => {
    const { rows } = await client.query<{ major: string }>(
      `select (current_setting('server_version_num')::int4 / 10000)::text as major`,
    );
    return rows[0]?.major ?? '';
  });
}

async function makeTemplate(serverUrl: string, name: string): Promise<void> {
  await onServer(serverUrl, (client) => client.query(`create database ${name}`));
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  await migrate(url.href);
}

async function dropDatabases(serverUrl: string, prefix: string): Promise<void> {
  await onServer(serverUrl, async (client) => {
    const found = await client.query<{ datname: string }>(
      'select datname from pg_database where starts_with(datname, $1)',
      [prefix],
    );
    for (const { datname } of found.rows) await client.query(`drop database if exists ${datname} with (force)`);
  });
}

async function onServer<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
