import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { postmasterOf } from './postmaster.ts';
import { endProcess, identityOf } from './process-identity.ts';
import { postgresFolder, readState, type ServerName } from './server-state.ts';

/** PostgreSQL's fast shutdown writes a checkpoint; Temporal flushes its file. */
const GRACE_MS = 15_000;
const STOP_SIGNALS = { postgres: 'SIGINT', temporal: 'SIGTERM' } as const;

/**
 * Ends what a supervisor that is dead left running of this project; only whoever holds the project's lock may ask. The
 * processes of the state file are known by pid and start, so that a recycled pid is let live; a PostgreSQL on the
 * project's data is found by the data too. Resolves to what had to be ended.
 */
export async function endOrphans(projectDir: string): Promise<ServerName[]> {
  const known = readState(projectDir)?.processes ?? [];
  const ended = await Promise.all(
    known.map(async (process) =>
      (await endProcess(process, { signal: STOP_SIGNALS[process.server], graceMs: GRACE_MS })) ? [process.server] : [],
    ),
  );
  if (await endPostmaster(projectDir)) ended.push(['postgres']);
  return [...new Set(ended.flat())];
}

async function endPostmaster(projectDir: string): Promise<boolean> {
  const home = postgresFolder(projectDir);
  if (!existsSync(home)) return false;
  const pid = postmasterOf(path.join(realpathSync(home), 'data'));
  const identity = pid === null ? null : identityOf(pid);
  return identity !== null && endProcess(identity, { signal: STOP_SIGNALS.postgres, graceMs: GRACE_MS });
}
