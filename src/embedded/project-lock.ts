import { randomUUID } from 'node:crypto';
import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { OnceperError } from '../kernel/error.ts';
import { identityOf, isAlive, type ProcessIdentity } from './process-identity.ts';
import { onceperFolder } from './server-state.ts';

export type Lock =
  | { readonly kind: 'acquired'; readonly release: () => void }
  | { readonly kind: 'held'; readonly holder: ProcessIdentity };

const Claim = z.object({ pid: z.number(), startedAt: z.string(), released: z.boolean() });
type Claim = z.infer<typeof Claim>;

/**
 * Takes the lock of a folder for this process, or says who has it. A holder that died has lost it, kill -9 included.
 *
 * Each claim is a file named by a number, made by a link, which fails where the number is taken; the highest number
 * holds. A stale lock is never removed to be taken, but superseded by the next number: of two that see the same stale
 * holder one gets the number, where two removers could each remove the other's fresh lock and both go on.
 */
export function acquireLock(folder: string): Lock {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const self = thisProcess();
  for (;;) {
    const highest = highestClaim(folder);
    const claim = highest === 0 ? null : readClaim(folder, highest);
    // Superseded and swept away between listing and reading.
    if (highest !== 0 && claim === null && highestClaim(folder) !== highest) continue;
    if (claim !== null && !claim.released && isAlive(claim)) return { kind: 'held', holder: claim };
    const mine = highest + 1;
    if (!place(folder, mine, { ...self, released: false })) continue;
    if (highestClaim(folder) > mine) {
      // We were so slow that others came and went: our number was swept and free again.
      rmSync(fileOf(folder, mine), { force: true });
      continue;
    }
    sweepBelow(folder, mine);
    return { kind: 'acquired', release: () => replace(folder, mine, { ...self, released: true }) };
  }
}

/** The folder of the lock that `up` holds for as long as it supervises a project's servers. */
export function lockFolder(projectDir: string): string {
  return path.join(onceperFolder(projectDir), 'lock');
}

export function thisProcess(): ProcessIdentity {
  const self = identityOf(process.pid);
  if (self !== null) return self;
  throw new OnceperError({
    code: 'no_process_table',
    message: 'this system does not tell when a process started, neither by /proc nor by ps',
    remedy: 'mount /proc or install ps, or set DATABASE_URL and TEMPORAL_ADDRESS to servers of your own',
  });
}

/** Who supervises the servers of a project now, ready or not, or null. */
export function lockHolder(projectDir: string): ProcessIdentity | null {
  const folder = lockFolder(projectDir);
  const highest = highestClaim(folder);
  const claim = highest === 0 ? null : readClaim(folder, highest);
  return claim === null || claim.released || !isAlive(claim) ? null : claim;
}

function fileOf(folder: string, number: number): string {
  return path.join(folder, String(number));
}

function numbersIn(folder: string): number[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^[1-9]\d*$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

function highestClaim(folder: string): number {
  return Math.max(0, ...numbersIn(folder));
}

function readClaim(folder: string, number: number): Claim | null {
  try {
    return Claim.parse(JSON.parse(readFileSync(fileOf(folder, number), 'utf8')));
  } catch {
    return null;
  }
}

/** Whether the number was still free. Written aside first: a claim is never seen half-written. */
function place(folder: string, number: number, claim: Claim): boolean {
  const aside = writeAside(folder, claim);
  try {
    linkSync(aside, fileOf(folder, number));
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

function replace(folder: string, number: number, claim: Claim): void {
  renameSync(writeAside(folder, claim), fileOf(folder, number));
}

function writeAside(folder: string, claim: Claim): string {
  const aside = path.join(folder, `.${randomUUID()}`);
  writeFileSync(aside, JSON.stringify(claim), { mode: 0o600 });
  return aside;
}

function sweepBelow(folder: string, number: number): void {
  for (const lower of numbersIn(folder)) {
    if (lower < number) rmSync(fileOf(folder, lower), { force: true });
  }
}
