import { execFileSync, spawnSync } from 'node:child_process';
import { userInfo } from 'node:os';
import { OnceperError } from '../kernel/error.ts';

/** An operating system user, by its numbers. */
export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

const CANDIDATES = ['postgres', 'onceper-postgres'] as const;

/**
 * The user that PostgreSQL must run as: null when we are not root (it then runs as we do), else the system's `postgres`,
 * else a system user of our own, created here: PostgreSQL refuses to run as root. Throws `no_database_user` where none
 * can be had.
 */
export function databaseUser(): SystemUser | null {
  if (userInfo().uid !== 0) return null;
  for (const name of CANDIDATES) {
    const found = lookUp(name);
    if (found !== null) return found;
  }
  const created = spawnSync(
    'useradd',
    [
      '--system',
      '--user-group',
      '--no-create-home',
      '--home-dir',
      '/nonexistent',
      '--shell',
      '/usr/sbin/nologin',
      CANDIDATES[1],
    ],
    { encoding: 'utf8' },
  );
  const user = lookUp(CANDIDATES[1]);
  if (user !== null) return user;
  throw new OnceperError({
    code: 'no_database_user',
    message: `PostgreSQL does not run as root, and no user could be made for it: ${created.error?.message ?? created.stderr.trim()}`,
    remedy: 'create a system user named postgres, run as a normal user, or set DATABASE_URL to a server of your own',
  });
}

/** Whether this user can enter the folder, which asks every folder above it too. */
export function canEnter(user: SystemUser | null, folder: string): boolean {
  const asked = spawnSync('/bin/sh', ['-c', 'cd "$1"', 'sh', folder], { cwd: '/', stdio: 'ignore', ...user });
  return asked.status === 0;
}

function lookUp(name: string): SystemUser | null {
  try {
    const id = (flag: string): number =>
      Number.parseInt(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }), 10);
    return { uid: id('-u'), gid: id('-g') };
  } catch {
    return null;
  }
}
