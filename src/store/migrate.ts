import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import knex, { type Knex } from 'knex';
import pg from 'pg';
import { OnceperError } from '../kernel/error.ts';
import { connectionOf } from './connection.ts';
import { faultOf } from './fault.ts';
import { checkSession, SESSION_OPTIONS } from './session-check.ts';

/** One number for every starter of every release: whoever holds it migrates, the others wait for it. */
const MIGRATION_LOCK = '7160112403';
const LOCK_TIMEOUT = '10s';

/** From 0011 on what a migration makes belongs to the group of owners, whoever of them migrates. */
const AS_OWNER = `select set_config('role', 'onceper_owner', true)
  from pg_namespace n join pg_roles r on r.oid = n.nspowner
 where n.nspname = 'onceper' and r.rolname = 'onceper_owner'`;

/**
 * Brings the database to this release's schema: numbered plain SQL, forward only, a transaction a file. Any number of
 * starters at once: one migrates, the others wait and find it done. A migrator that was killed leaves nothing to repair:
 * its session lock died with it, so knex's own lock row is freed by whoever holds the session lock next.
 * Throws OnceperError `database_newer` where the database has migrations that this build does not know, `migration_failed` naming
 * the file, and what can be wrong with a database.
 */
export async function migrate(url: string, folder: string = migrationsFolder()): Promise<{ applied: string[] }> {
  const session = { ...connectionOf(url), application_name: 'onceper migrate', options: SESSION_OPTIONS };
  const guard = new pg.Client(session);
  guard.on('error', () => undefined);
  try {
    await guard.connect();
    // A lock of a session that a pooler shares out would keep nobody off.
    await checkSession(guard, session);
    await guard.query(`select pg_advisory_lock(${MIGRATION_LOCK})`);
  } catch (error) {
    await guard.end();
    throw faultOf(error);
  }
  const db = openKnex(url);
  try {
    refuseNewer(await standingOf(db, folder));
    const config = migrationConfig(folder);
    if (await db.schema.hasTable('onceper_migration_lock')) await db('onceper_migration_lock').update({ is_locked: 0 });
    const [, applied] = (await db.migrate.latest(config)) as [number, string[]];
    return { applied };
  } catch (error) {
    if (error instanceof OnceperError) throw error;
    throw new OnceperError({
      code: 'migration_failed',
      message: `a migration failed and was rolled back: ${serversWords(error)}`,
      remedy: 'nothing of that file was applied; mend the cause and run npx onceper migrate again',
      cause: error,
    });
  } finally {
    await db.destroy();
    await guard.end();
  }
}

/** How a database stands to this build, by names of migrations, oldest first. */
export interface MigrationStanding {
  /** This build has them, and the database lacks them. */
  readonly pending: readonly string[];
  /** The database has them, and this build does not know them: a later one made them. */
  readonly unknown: readonly string[];
}

/** Reads how the database stands; throws what can be wrong with a database. */
export async function migrationStanding(url: string, folder: string = migrationsFolder()): Promise<MigrationStanding> {
  const db = openKnex(url);
  try {
    return await standingOf(db, folder);
  } catch (error) {
    throw faultOf(error);
  } finally {
    await db.destroy();
  }
}

async function standingOf(db: Knex, folder: string): Promise<MigrationStanding> {
  const known = migrationFiles(folder);
  if (!(await db.schema.hasTable('onceper_migration'))) return { pending: known, unknown: [] };
  const rows = await db('onceper_migration').select<{ name: string }[]>('name').orderBy('name');
  const applied = rows.map((row) => row.name);
  return {
    pending: known.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !known.includes(name)),
  };
}

function refuseNewer({ unknown }: MigrationStanding): void {
  if (unknown.length === 0) return;
  throw new OnceperError({
    code: 'database_newer',
    message: `the database is newer than this build, which does not know ${unknown.join(', ')}`,
    remedy: 'use the build that migrated it, or a later one: migrations go forward only',
  });
}

function openKnex(url: string): Knex {
  const quiet = () => undefined;
  return knex({
    client: 'pg',
    connection: { ...connectionOf(url) },
    pool: { min: 0, max: 1 },
    // A user called onceper would otherwise look for knex's tables in schema onceper as soon as it exists.
    searchPath: ['public'],
    // knex prints the whole file beside an error; ours names the cause once.
    log: { warn: quiet, error: quiet, debug: quiet, deprecate: quiet },
  });
}

/** knex puts the statement, here a whole file, in front of what the server said. */
function serversWords(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.slice(message.lastIndexOf(' - ') + 3);
}

function migrationConfig(folder: string): Knex.MigratorConfig {
  return {
    tableName: 'onceper_migration',
    migrationSource: {
      getMigrations: () => Promise.resolve(migrationFiles(folder)),
      getMigrationName: (name: string) => name,
      getMigration: (name: string) => Promise.resolve(migration(readFileSync(join(folder, name), 'utf8'))),
    },
  };
}

function migration(sql: string): Knex.Migration {
  // knex takes a question mark for a place to put a value, also in a regular expression, and writes $1 there.
  const text = sql.replaceAll('?', String.raw`\?`);
  return {
    // A short lock time-out: an ALTER that waits behind a long reader would stall everyone queued behind it.
    async up(db) {
      await db.raw(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
      await db.raw(AS_OWNER);
      await db.raw(text);
      // knex writes its own row in this transaction, into a table that is the login's.
      await db.raw('reset role');
    },
    down: () => Promise.reject(new Error('migrations go forward only')),
  };
}

function migrationFiles(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name))
    .sort();
}

/** The folder beside the sources or, from a build, beside dist. */
function migrationsFolder(): string {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    const candidate = join(folder, 'migrations');
    if (existsSync(candidate)) return candidate;
  }
  throw new OnceperError({
    code: 'migrations_missing',
    message: 'the folder migrations/ is not beside this build',
    remedy: 'install the package whole',
  });
}
