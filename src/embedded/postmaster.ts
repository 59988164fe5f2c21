import { existsSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { OnceperError } from '../kernel/error.ts';
import { identityOf } from './process-identity.ts';

/** PostgreSQL would refuse too, but with a remedy (delete the lock file) that destroys data. */
export function refuseRunning(dataDir: string): void {
  const pid = postmasterOf(dataDir);
  if (pid === null) return;
  throw new OnceperError({
    code: 'postgres_running',
    message: `a PostgreSQL server (pid ${pid}) already runs on ${dataDir}`,
    remedy: 'stop it with npx onceper down, or use it through DATABASE_URL',
    at: dataDir,
  });
}

/**
 * The pid of the server that runs on this data directory, or null. A pid that the system has given to another process
 * since does not name the directory on its command line.
 */
export function postmasterOf(dataDir: string): number | null {
  const pid = pidInLockFile(dataDir);
  if (pid === null) return null;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(dataDir) ? pid : null;
  } catch {
    return null;
  }
}

/**
 * PostgreSQL does not start while its lock file names a pid that lives, be it anybody's: after a container's restart
 * the same small pids come again. A file whose pid is dead is left to PostgreSQL, which judges it better.
 */
export function forgetRecycledPid(dataDir: string): void {
  const pid = pidInLockFile(dataDir);
  if (pid === null || process.platform !== 'linux') return;
  if (identityOf(pid) !== null && postmasterOf(dataDir) === null) rmSync(lockFileOf(dataDir), { force: true });
}

function pidInLockFile(dataDir: string): number | null {
  if (!existsSync(lockFileOf(dataDir))) return null;
  const pid = Number.parseInt(readFileSync(lockFileOf(dataDir), 'utf8').split('\n')[0] ?? '', 10);
  return Number.isInteger(pid) ? pid : null;
}

function lockFileOf(dataDir: string): string {
  return path.join(dataDir, 'postmaster.pid');
}
