import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import knex, { type Knex } from 'knex';
import pg from 'pg';
import { OnceperError } from '../kernel/error.ts';
import { connectionOf } from './connection.ts';
import { faultOf } from './fault.ts';

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
 * Throws OnceperError `database_unreachable`, or `migration_failed` naming the file.
 */
export async function migrate(url: string, folder: string = migrationsFolder()): Promise<{ applied: string[] }> {
  const guard = new pg.Client({ ...connectionOf(url), application_name: 'onceper migrate' });
  guard.on('error', () => undefined);
  try {
    await guard.connect();
    await guard.query(`select pg_advisory_lock(${MIGRATION_LOCK})`);
  } catch (error) {
    await guard.end();
    throw faultOf(error);
  }
  const db = openKnex(url);
  try {
    const config = migrationConfig(folder);
    if (await db.schema.hasTable('onceper_migration_lock')) await db('onceper_migration_lock').update({ is_locked: 0 });
    const [, applied] = (await db.migrate.latest(config)) as [number, string[]];
    return { applied };
  } catch (error) {
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

/** Names of the migrations that this release has and the database lacks, oldest first. */
export async function pendingMigrations(url: string, folder: string = migrationsFolder()): Promise<string[]> {
  const db = openKnex(url);
  try {
    if (!(await db.schema.hasTable('onceper_migration'))) return migrationFiles(folder);
    const rows = await db('onceper_migration').select<{ name: string }[]>('name');
    const applied = new Set(rows.map((row) => row.name));
    return migrationFiles(folder).filter((name) => !applied.has(name));
  } catch (error) {
    throw faultOf(error);
  } finally {
    await db.destroy();
  }
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
