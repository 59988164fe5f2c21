import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { OnceperError } from '../kernel/error.ts';

/** One process and no other: a pid alone names whoever the system gave it to last. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in the system's own words; compared for equality only. */
  readonly startedAt: string;
}

/** The identity of the process that has this pid now, or null where there is none (a zombie is none: it runs nothing). */
export function identityOf(pid: number): ProcessIdentity | null {
  const startedAt = process.platform === 'linux' ? startOnLinux(pid) : startByPs(pid);
  return startedAt === null ? null : { pid, startedAt };
}

/** Whether exactly this process still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identityOf(identity.pid)?.startedAt === identity.startedAt;
}

/**
 * Ends exactly this process: `signal`, and SIGKILL where it is still there after `graceMs`. Resolves to whether there was
 * anything to end. Throws `not_permitted` where it belongs to another user.
 */
export async function endProcess(
  identity: ProcessIdentity,
  options: { readonly signal: 'SIGINT' | 'SIGTERM'; readonly graceMs: number },
): Promise<boolean> {
  if (!isAlive(identity)) return false;
  signalProcess(identity, options.signal);
  if (!(await goneWithin(identity, options.graceMs))) {
    signalProcess(identity, 'SIGKILL');
    await goneWithin(identity, 5_000);
  }
  return true;
}

/** Whether the process went within that time. */
async function goneWithin(identity: ProcessIdentity, milliseconds: number): Promise<boolean> {
  const until = performance.now() + milliseconds;
  while (isAlive(identity)) {
    if (performance.now() >= until) return false;
    await delay(25);
  }
  return true;
}

/** Sends a signal to exactly this process; one that has gone gets none. Throws `not_permitted` for another user's. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isAlive(identity)) return;
  const { pid } = identity;
  try {
    process.kill(pid, signal);
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : null;
    if (code === 'ESRCH') return;
    throw new OnceperError({
      code: 'not_permitted',
      message: `process ${pid} belongs to another user and can't be ended by this one`,
      remedy: 'run this as the user who started it',
      at: String(pid),
      cause,
    });
  }
}

/** The boot id beside the tick count: after a reboot, the same pid and tick could meet again. */
function startOnLinux(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold blanks and parentheses; what follows the last one is fixed (proc(5)).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state] = fields;
    const ticks = fields[19];
    if (state === 'Z' || state === 'X' || ticks === undefined) return null;
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${ticks}`;
  } catch {
    return null;
  }
}

function startByPs(pid: number): string | null {
  try {
    const answer = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    const [, state, started] = /^(\S+)\s+(.+)$/.exec(answer) ?? [];
    return started === undefined || state === undefined || state.startsWith('Z') ? null : started;
  } catch {
    return null;
  }
}
