import { spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { chmodSync, chownSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { OnceperError } from '../kernel/error.ts';
import type { SystemUser } from './database-user.ts';
import type { PostgresBinaries } from './postgres-binaries.ts';
import { OWNER } from './postgres-data.ts';

/** A superuser may run programs as the server's user, so whoever connects must be who has this file. */
const HBA = `# Written by onceper: whoever connects proves it with the password.
host all all 127.0.0.1/32 scram-sha-256
host replication all 127.0.0.1/32 scram-sha-256
`;

/**
 * The rounds of a hash slow down whoever guesses a short password. This one has 256 random bits, which nobody guesses, and each
 * connection would pay for them.
 */
export const SCRAM_ITERATIONS = '1';

/** The file of the password to the data of `dir`, for PGPASSFILE of psql too. Beside the data: a link may lead to them. */
export function passwordFile(dir: string): string {
  return `${path.resolve(dir)}.pgpass`;
}

/**
 * The password to the superuser of the data of `dir`, whose server must not run. Data that have none yet, being new or of a release
 * before passwords, get one here, and admit nobody without it. Throws OnceperError `password_not_set` with the server's own words.
 */
export function securePassword(
  dir: string,
  dataDir: string,
  binaries: PostgresBinaries,
  user: SystemUser | null,
): string {
  const file = passwordFile(dir);
  const hba = path.join(dataDir, 'pg_hba.conf');
  const stored = storedPassword(file);
  if (stored !== null && readFileSync(hba, 'utf8') === HBA) return stored;
  const password = stored ?? randomBytes(32).toString('base64url');
  setPassword(password, dataDir, binaries, user);
  // In this order: a start that was killed in between is made good by the next.
  replaceFile(file, `127.0.0.1:*:*:${OWNER}:${password}\n`, null);
  replaceFile(hba, HBA, user);
  return password;
}

function storedPassword(file: string): string | null {
  if (!existsSync(file)) return null;
  chmodSync(file, 0o600);
  return /^127\.0\.0\.1:\*:\*:onceper:([\w-]+)$/m.exec(readFileSync(file, 'utf8'))?.[1] ?? null;
}

/** Without a server, whom nobody could reach before it has a password. */
function setPassword(password: string, dataDir: string, binaries: PostgresBinaries, user: SystemUser | null): void {
  const done = spawnSync(
    binaries.postgres,
    ['--single', '-D', dataDir, '-c', `scram_iterations=${SCRAM_ITERATIONS}`, 'postgres'],
    {
      cwd: dataDir,
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      input: `alter role ${OWNER} password '${password}'\n`,
      encoding: 'utf8',
      ...user,
    },
  );
  const words = /(?:ERROR|FATAL|PANIC): .*/.exec(`${done.stderr}`)?.[0] ?? done.error?.message;
  if (done.status === 0 && words === undefined) return;
  throw new OnceperError({
    code: 'password_not_set',
    message: `PostgreSQL could not set its password: ${words ?? `it ended with ${done.status ?? done.signal}`}`,
    remedy: 'free space or permissions on that folder, or set DATABASE_URL to a server of your own',
    at: dataDir,
  });
}

/** The file is whole or as it was, and at no moment open to others. */
function replaceFile(file: string, text: string, user: SystemUser | null): void {
  const aside = `${file}.${randomUUID()}`;
  try {
    writeFileSync(aside, text, { mode: 0o600, flag: 'wx' });
    if (user !== null) chownSync(aside, user.uid, user.gid);
    renameSync(aside, file);
  } catch (error) {
    rmSync(aside, { force: true });
    throw error;
  }
}
