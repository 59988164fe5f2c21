import { setTimeout as delay } from 'node:timers/promises';
import { OnceperError } from '../kernel/error.ts';
import { type Addresses, addressesOf } from './addresses.ts';
import { endOrphans } from './orphans.ts';
import { openOnceperFolder } from './private-folder.ts';
import type { ProcessIdentity } from './process-identity.ts';
import { acquireLock, lockFolder, lockHolder, thisProcess } from './project-lock.ts';
import {
  onceperFolder,
  type RunningServers,
  removeState,
  runningServers,
  type State,
  writeState,
} from './server-state.ts';
import { type Ended, type StartedServers, type StartOptions, startBoth } from './start-servers.ts';
import { storageFault } from './storage-fault.ts';

export type Up =
  | {
      readonly kind: 'started';
      readonly servers: RunningServers;
      readonly addresses: Addresses;
      /** Resolves when one of the servers has ended without being asked; never, where that does not happen. */
      readonly ended: Promise<Ended>;
      /** Stops what was started, and forgets it; a second call waits for the first. */
      readonly stop: () => Promise<void>;
    }
  | { readonly kind: 'already_running'; readonly servers: RunningServers; readonly addresses: Addresses };

/** Longer than a cold start with a download: whoever waits for another's start gives up after this. */
const OTHER_STARTS_WITHIN_MS = 360_000;

/**
 * Starts PostgreSQL (durable) and Temporal's dev server with its UI for a project, with this process as their supervisor:
 * they end with it. Of two at once one starts and the other reports what the first started. What an earlier supervisor
 * left behind is ended first. Throws `storage_refused`, and what starting either server throws; nothing is left running.
 */
export async function up(options: StartOptions): Promise<Up> {
  const folder = onceperFolder(options.projectDir);
  try {
    openOnceperFolder(options.projectDir, options.databaseUrl === null);
    for (;;) {
      const lock = acquireLock(lockFolder(options.projectDir));
      if (lock.kind === 'acquired') return await superviseHere(options, lock.release);
      const servers = await otherStarts(options.projectDir, lock.holder);
      if (servers !== null) return { kind: 'already_running', servers, addresses: addressesOf(options, servers) };
    }
  } catch (error) {
    throw storageFault(error, folder);
  }
}

async function superviseHere(options: StartOptions, release: () => void): Promise<Up> {
  const { projectDir } = options;
  let state: State = {
    supervisor: thisProcess(),
    startedAt: new Date().toISOString(),
    postgres: null,
    temporal: null,
    ready: false,
    processes: [],
  };
  const keep = (changed: Partial<State>): void => {
    state = { ...state, ...changed };
    writeState(projectDir, state);
  };
  const forget = (): void => {
    removeState(projectDir);
    release();
  };
  let started: StartedServers;
  try {
    const orphans = await endOrphans(projectDir);
    if (orphans.length > 0) options.onProgress?.('ended what an earlier start had left running');
    keep({});
    // Noted as soon as they have a pid: were we killed now, the next start would know what to end.
    started = await startBoth(options, (process) => keep({ processes: [...state.processes, process] }));
  } catch (error) {
    forget();
    throw error;
  }
  keep({ postgres: started.postgres, temporal: started.temporal, ready: true });
  const { supervisor, startedAt, postgres, temporal } = state;
  const servers: RunningServers = { supervisor, startedAt, postgres, temporal };
  let stopping: Promise<void> | null = null;
  const stop = (): Promise<void> => {
    stopping ??= started.stop().finally(forget);
    return stopping;
  };
  return { kind: 'started', servers, addresses: addressesOf(options, servers), ended: started.ended, stop };
}

/** The other's servers once they are ready, or null where it gave the lock up without having got so far. */
async function otherStarts(projectDir: string, holder: ProcessIdentity): Promise<RunningServers | null> {
  const until = performance.now() + OTHER_STARTS_WITHIN_MS;
  while (lockHolder(projectDir)?.pid === holder.pid) {
    const servers = runningServers(projectDir);
    if (servers !== null) return servers;
    if (performance.now() > until) {
      throw new OnceperError({
        code: 'other_start_hangs',
        message: `process ${holder.pid} has been starting the servers of ${projectDir} for ${OTHER_STARTS_WITHIN_MS / 1000} s`,
        remedy: 'stop it with npx onceper down, then start again',
        at: String(holder.pid),
      });
    }
    await delay(50);
  }
  return null;
}
