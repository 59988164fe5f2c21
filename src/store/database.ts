import pg from 'pg';
import { isRolledBack } from '../kernel/commit-answer.ts';
import { codeOf, OnceperError } from '../kernel/error.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import { arrayLiteral, isPlainArray } from './array-literal.ts';
import { connectionOf } from './connection.ts';
import { faultOf } from './fault.ts';
import { checkSession, SESSION_OPTIONS } from './session-check.ts';

/** A pool of connections to one PostgreSQL, and what its server can do. */
export interface Database extends Tx {
  readonly pool: pg.Pool;
  readonly name: string;
  /** `server_version_num`, asked once. */
  readonly serverVersion: () => Promise<number>;
  close(): Promise<void>;
}

/** PostgreSQL knows transaction_timeout from this version on; before it a claim ends the backends that block it (blockers.ts). */
export const TRANSACTION_TIMEOUT_SINCE = 170_000;

/** Settings of one transaction, in milliseconds; `set local`, so they end with it. */
export interface TransactionSettings {
  readonly lockTimeout?: number;
  readonly statementTimeout?: number;
  readonly idleInTransactionTimeout?: number;
  readonly transactionTimeout?: number;
  /** How often a running statement looks whether its client is still there. */
  readonly connectionCheckInterval?: number;
  /** For hundreds of rows by their keys: between 10,000 and 100,000 rows the planner reads the table instead, 20 ms for 5. */
  readonly byIndex?: boolean;
  /** What pg_stat_activity shows meanwhile, so that a person sees which slice a connection works on. */
  readonly label?: string;
}

const INT8 = 20;
const DATE = 1082;
const TIMESTAMPTZ = 1184;

/** Parsers that keep money exact and instants out of JavaScript's Date; everything else is pg's own. */
const types: pg.CustomTypesConfig = {
  getTypeParser(oid, format) {
    if (format === 'binary') return pg.types.getTypeParser(oid, 'binary');
    if (oid === INT8) return BigInt;
    if (oid === DATE) return String;
    if (oid === TIMESTAMPTZ) return isoInstant;
    return pg.types.getTypeParser(oid, 'text');
  },
};

/** `2026-09-30 18:00:00+00`, as a session in UTC writes it, as ISO 8601. */
function isoInstant(text: string): string {
  return text.replace(' ', 'T').replace(/\+00$/, 'Z');
}

/**
 * Opens a pool. Sessions run in UTC and READ COMMITTED whatever the server's defaults; a connection that the server ends
 * while it is idle is dropped from the pool and reported to `onIdleError`, never thrown at the process. The first connection makes
 * sure that it is a session; what it throws is thrown by whatever is asked first (session-check.ts).
 */
export function openDatabase(options: {
  url: string;
  name: string;
  max: number;
  onIdleError?: (error: Error) => void;
}): Database {
  const report = options.onIdleError ?? (() => undefined);
  const session = {
    ...connectionOf(options.url),
    application_name: options.name,
    types,
    options: SESSION_OPTIONS,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    // A server that vanished is noticed in half a minute, not in the two hours after which the system would ask.
    keepAliveInitialDelayMillis: 10_000,
  };
  const pool = new pg.Pool({ ...session, max: options.max, idleTimeoutMillis: 30_000, verify: firstChecked(session) });
  pool.on('error', report);
  pool.on('connect', (client) => client.on('error', report));
  return {
    pool,
    name: options.name,
    async query<Row>(text: string, values?: readonly unknown[], name?: string) {
      return execute<Row>(pool, text, values, name);
    },
    serverVersion: cachedVersion(pool),
    close: () => pool.end(),
  };
}

/** Checks the first connection of a pool, and with it all: they go the same way. A failure is not remembered. */
function firstChecked(config: pg.ClientConfig): NonNullable<pg.PoolConfig['verify']> {
  let checked: Promise<void> | undefined;
  return (client, done) => {
    checked ??= checkSession(client, config).catch((error: unknown) => {
      checked = undefined;
      throw error;
    });
    checked.then(
      () => done(),
      (error: unknown) => done(faultOf(error)),
    );
  };
}

/** A server is not replaced under a pool; a failure to ask is not remembered. */
function cachedVersion(pool: pg.Pool): () => Promise<number> {
  let asked: Promise<number> | undefined;
  const ask = async () => {
    const { rows } = await execute<{ version: number }>(
      pool,
      `select current_setting('server_version_num')::int4 as version`,
    );
    return rows[0]?.version ?? 0;
  };
  return () => {
    asked ??= ask().catch((error: unknown) => {
      asked = undefined;
      throw error;
    });
    return asked;
  };
}

/**
 * Runs `work` in one READ COMMITTED transaction. It commits when `work` returns and rolls back when it throws. An error on
 * COMMIT that is a rollback for certain is thrown under its own code; any other is `commit_unknown`: the work may or may not
 * be there, and the caller must re-read by key.
 */
export async function transaction<T>(
  db: Database,
  settings: TransactionSettings,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const known = await knownSettings(db, settings);
  const client = await connect(db);
  const tx: Tx = { query: (text, values, name) => execute(client, text, values, name) };
  let broken: Error | undefined;
  try {
    await tx.query(opening(known, db.name));
    const result = await work(tx);
    await commit(client);
    return result;
  } catch (error) {
    broken = await rollBack(client, error);
    throw error;
  } finally {
    client.release(broken);
  }
}

/** The database's clock, the only one that decides anything. */
export async function clockOf(tx: Tx): Promise<Instant> {
  const { rows } = await tx.query<{ now: Instant }>('select clock_timestamp() as now');
  const [row] = rows;
  if (row === undefined)
    throw new OnceperError({ code: 'database', message: 'the clock gave no row', remedy: 'try again' });
  return row.now;
}

/** One checked-out client for what a pool can't do (COPY, LISTEN, session locks); the caller releases it. */
export async function connect(db: Database): Promise<pg.PoolClient> {
  try {
    return await db.pool.connect();
  } catch (error) {
    throw faultOf(error);
  }
}

/** A transaction interface over a client that is already in a transaction of the caller's. */
export function asTx(client: pg.PoolClient): Tx {
  return { query: (text, values, name) => execute(client, text, values, name) };
}

async function execute<Row>(
  target: pg.Pool | pg.PoolClient,
  text: string,
  values?: readonly unknown[],
  name?: string,
): Promise<{ rows: Row[]; rowCount: number }> {
  try {
    const answer = await ask(target, text, values, name);
    return { rows: answer.rows as Row[], rowCount: answer.rowCount ?? 0 };
  } catch (error) {
    throw faultOf(error);
  }
}

function ask(
  target: pg.Pool | pg.PoolClient,
  text: string,
  values: readonly unknown[] | undefined,
  name: string | undefined,
): Promise<pg.QueryResult> {
  if (values === undefined && name === undefined) return target.query(text);
  const written = (values ?? []).map((value) => (isPlainArray(value) ? arrayLiteral(value) : value));
  return target.query(name === undefined ? { text, values: written } : { name, text, values: written });
}

/** What the server says for certain to have rolled back is said as of any statement; of everything else nothing is concluded. */
async function commit(client: pg.PoolClient): Promise<void> {
  const answer = await client.query('commit').catch((error: unknown) => {
    throw isRolledBack(codeOf(error)) ? faultOf(error) : commitUnknown(error);
  });
  if (answer.command !== 'ROLLBACK') return;
  throw new OnceperError({
    code: 'rolled_back',
    message: 'the transaction was rolled back: a statement in it had failed, and nobody heeded that',
    remedy: 'see the log of the database server at this moment for that statement',
  });
}

function commitUnknown(error: unknown): OnceperError {
  return new OnceperError({
    code: 'commit_unknown',
    message: `the answer to COMMIT was lost: ${faultOf(error).message}`,
    remedy: 'read the row again by its key before deciding anything',
    cause: error,
  });
}

/** Rolls back; a connection that can't even do that is handed to release() and destroyed. */
async function rollBack(client: pg.PoolClient, error: unknown): Promise<Error | undefined> {
  if (error instanceof OnceperError && (error.code === 'connection_lost' || error.code === 'commit_unknown'))
    return error;
  try {
    await client.query('rollback');
    return undefined;
  } catch (failure) {
    return faultOf(failure);
  }
}

/** Leaves out what the server does not know. */
async function knownSettings(db: Database, settings: TransactionSettings): Promise<TransactionSettings> {
  if (settings.transactionTimeout === undefined) return settings;
  if ((await db.serverVersion()) >= TRANSACTION_TIMEOUT_SINCE) return settings;
  const { transactionTimeout: _, ...known } = settings;
  return known;
}

function opening(settings: TransactionSettings, name: string): string {
  const parts = ['begin isolation level read committed'];
  const set = (parameter: string, value: number | undefined) => {
    if (value !== undefined) parts.push(`set local ${parameter} = ${Math.max(1, Math.round(value))}`);
  };
  set('lock_timeout', settings.lockTimeout);
  set('statement_timeout', settings.statementTimeout);
  set('idle_in_transaction_session_timeout', settings.idleInTransactionTimeout);
  set('transaction_timeout', settings.transactionTimeout);
  set('client_connection_check_interval', settings.connectionCheckInterval);
  if (settings.byIndex === true) parts.push('set local enable_seqscan = off');
  if (settings.label !== undefined) {
    parts.push(`set local application_name = ${pg.escapeLiteral(`${name} ${settings.label}`.slice(0, 63))}`);
  }
  return parts.join('; ');
}
