import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { isAlive } from './process-identity.ts';

const ServerName = z.enum(['postgres', 'temporal']);
export type ServerName = z.infer<typeof ServerName>;

const Identity = z.object({ pid: z.number(), startedAt: z.string() });

const PostgresRecord = Identity.extend({
  url: z.string(),
  port: z.number(),
  dataDir: z.string(),
  logFile: z.string(),
  version: z.string(),
});

const TemporalRecord = Identity.extend({
  address: z.string(),
  namespace: z.string(),
  port: z.number(),
  uiUrl: z.string(),
  databaseFile: z.string(),
  logFile: z.string(),
  /** The file of the CLI that runs it, so that `npx temporal` need not look for one. */
  cli: z.string(),
  version: z.string(),
});

/**
 * What `up` knows about its servers, as `.onceper/servers.json` keeps it. A server that a variable supplies is null: it is
 * not ours to stop, and its connection string is not ours to keep.
 */
const RunningServers = z.object({
  supervisor: Identity,
  startedAt: z.string(),
  postgres: PostgresRecord.nullable(),
  temporal: TemporalRecord.nullable(),
});
export type RunningServers = z.infer<typeof RunningServers>;

/** The state while servers start and stop: what must be ended if the supervisor dies now. */
const State = RunningServers.extend({
  ready: z.boolean(),
  /** Every process that was started, from before it was ready. */
  processes: z.array(Identity.extend({ server: ServerName })),
});
export type State = z.infer<typeof State>;

/** The folder of a project that holds its servers' data, logs and state. */
export function onceperFolder(projectDir: string): string {
  return path.join(projectDir, '.onceper');
}

/** The folder of PostgreSQL's data, or the link to it. */
export function postgresFolder(projectDir: string): string {
  return path.join(onceperFolder(projectDir), 'postgres');
}

/** What was last written, by whoever; null where there is nothing, or nothing of this release's shape. */
export function readState(projectDir: string): State | null {
  try {
    return State.parse(JSON.parse(readFileSync(stateFile(projectDir), 'utf8')));
  } catch {
    return null;
  }
}

export function writeState(projectDir: string, state: State): void {
  const file = stateFile(projectDir);
  const aside = `${file}.${randomUUID()}`;
  writeFileSync(aside, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  renameSync(aside, file);
}

export function removeState(projectDir: string): void {
  rmSync(stateFile(projectDir), { force: true });
}

/** The servers of this project that are ready and whose supervisor lives, or null. */
export function runningServers(projectDir: string): RunningServers | null {
  const state = readState(projectDir);
  if (state === null || !state.ready || !isAlive(state.supervisor)) return null;
  const { supervisor, startedAt, postgres, temporal } = state;
  return { supervisor, startedAt, postgres, temporal };
}

function stateFile(projectDir: string): string {
  return path.join(onceperFolder(projectDir), 'servers.json');
}
