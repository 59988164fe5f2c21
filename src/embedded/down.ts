import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { OnceperError } from '../kernel/error.ts';
import { endOrphans } from './orphans.ts';
import { type ProcessIdentity, signalProcess } from './process-identity.ts';
import { acquireLock, lockFolder, lockHolder } from './project-lock.ts';
import { onceperFolder, readState, removeState, type ServerName } from './server-state.ts';
import { storageFault } from './storage-fault.ts';

export type Down =
  | { readonly kind: 'stopped'; readonly servers: readonly ServerName[] }
  | { readonly kind: 'not_running' };

/** Both servers' own grace, and then some. */
const SUPERVISOR_STOPS_WITHIN_MS = 30_000;

/**
 * Stops exactly what `up` started for this project: through its supervisor, or, where that is dead, each server that it
 * left. Throws `not_permitted` where they belong to another user, `own_servers` when called by the supervisor itself.
 */
export async function down(options: { readonly projectDir: string }): Promise<Down> {
  const { projectDir } = options;
  if (!existsSync(lockFolder(projectDir))) return { kind: 'not_running' };
  try {
    const holder = lockHolder(projectDir);
    const supervised = holder === null ? [] : (readState(projectDir)?.processes ?? []);
    if (holder !== null) await endSupervisor(holder, projectDir);
    const orphans = await endLeftovers(projectDir);
    const servers = new Set([...supervised.map((process) => process.server), ...orphans]);
    if (holder === null && servers.size === 0) return { kind: 'not_running' };
    return { kind: 'stopped', servers: [...servers] };
  } catch (error) {
    throw storageFault(error, onceperFolder(projectDir));
  }
}

/** The supervisor may live on (a demo that goes on to other things): having given up the lock, it has stopped them. */
async function endSupervisor(holder: ProcessIdentity, projectDir: string): Promise<void> {
  if (holder.pid === process.pid) {
    throw new OnceperError({
      code: 'own_servers',
      message: 'this process supervises the servers itself',
      remedy: 'call stop() of what up() returned',
    });
  }
  signalProcess(holder, 'SIGTERM');
  const until = performance.now() + SUPERVISOR_STOPS_WITHIN_MS;
  while (lockHolder(projectDir)?.pid === holder.pid) {
    if (performance.now() > until) signalProcess(holder, 'SIGKILL');
    await delay(25);
  }
}

async function endLeftovers(projectDir: string): Promise<ServerName[]> {
  const lock = acquireLock(lockFolder(projectDir));
  // Somebody starts them anew at this moment, and ends what was left.
  if (lock.kind === 'held') return [];
  try {
    const orphans = await endOrphans(projectDir);
    removeState(projectDir);
    return orphans;
  } finally {
    lock.release();
  }
}
