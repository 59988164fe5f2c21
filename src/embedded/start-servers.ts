import path from 'node:path';
import { isPortTaken, nextFreePort } from './ports.ts';
import { type EmbeddedPostgres, startPostgres } from './postgres.ts';
import { identityOf, type ProcessIdentity } from './process-identity.ts';
import { onceperFolder, postgresFolder, type RunningServers, type ServerName } from './server-state.ts';
import { type EmbeddedTemporal, startTemporal } from './temporal.ts';
import { findTemporalCli, type TemporalCli, type TemporalCliPlaces } from './temporal-cli.ts';

/** The ports that are tried first; the next free one is taken where somebody listens. */
export const DEFAULT_PORTS = { postgres: 15_432, temporal: 7_233, ui: 8_233 } as const;

export interface StartOptions {
  /** The project's folder, which gets a folder `.onceper/`. */
  readonly projectDir: string;
  /** The value of DATABASE_URL, or null; where it is given, no PostgreSQL is started. */
  readonly databaseUrl: string | null;
  /** The value of TEMPORAL_ADDRESS, or null; where it is given, no Temporal is started. */
  readonly temporalAddress: string | null;
  readonly temporalCli: Omit<TemporalCliPlaces, 'onProgress'>;
  readonly ports?: { readonly postgres: number; readonly temporal: number; readonly ui: number };
  /** Told what takes a while and what differs from the usual, one sentence each. */
  readonly onProgress?: (sentence: string) => void;
}

/** A server that ended without being asked to. */
export interface Ended {
  readonly server: ServerName;
  readonly code: number;
  readonly logFile: string;
}

export interface StartedServers {
  readonly postgres: RunningServers['postgres'];
  readonly temporal: RunningServers['temporal'];
  readonly ended: Promise<Ended>;
  readonly stop: () => Promise<void>;
}

type NoteProcess = (process: ProcessIdentity & { readonly server: ServerName }) => void;

/** Between the look at a port and the server's own bind somebody else may take it; more often than this is no accident. */
const PORT_TRIES = 5;

/** Starts what no variable supplies, both at once. When one fails, the other is stopped before the failure is thrown. */
export async function startBoth(options: StartOptions, note: NoteProcess): Promise<StartedServers> {
  const [database, dev] = await Promise.allSettled([
    options.databaseUrl === null ? postgresFor(options, note) : null,
    options.temporalAddress === null ? temporalFor(options, note) : null,
  ]);
  const postgres = database.status === 'fulfilled' ? database.value : null;
  const temporal = dev.status === 'fulfilled' ? dev.value : null;
  let asked = false;
  const stop = async (): Promise<void> => {
    asked = true;
    await Promise.all([postgres?.stop(), temporal?.server.stop()]);
  };
  for (const settled of [database, dev]) {
    if (settled.status === 'fulfilled') continue;
    await stop();
    throw settled.reason;
  }
  const ended = new Promise<Ended>((resolve) => {
    const report = (server: ServerName, { exited, logFile }: EmbeddedPostgres | EmbeddedTemporal): void => {
      void exited.then(({ code }) => {
        if (!asked) resolve({ server, code, logFile });
      });
    };
    if (postgres !== null) report('postgres', postgres);
    if (temporal !== null) report('temporal', temporal.server);
  });
  return { postgres: postgresRecord(postgres), temporal: temporalRecord(options, temporal), ended, stop };
}

function postgresFor(options: StartOptions, note: NoteProcess): Promise<EmbeddedPostgres> {
  return onFreePort('PostgreSQL', options.ports?.postgres ?? DEFAULT_PORTS.postgres, options, (port) =>
    startPostgres({
      dir: postgresFolder(options.projectDir),
      port,
      durable: true,
      onPid: (pid) => noteAlive(note, 'postgres', pid),
    }),
  );
}

async function temporalFor(
  options: StartOptions,
  note: NoteProcess,
): Promise<{ server: EmbeddedTemporal; cli: TemporalCli }> {
  const { onProgress } = options;
  const cli = await findTemporalCli({ ...options.temporalCli, ...(onProgress === undefined ? {} : { onProgress }) });
  const folder = onceperFolder(options.projectDir);
  const server = await onFreePort(
    'Temporal',
    options.ports?.temporal ?? DEFAULT_PORTS.temporal,
    options,
    async (port) =>
      startTemporal({
        cli: cli.file,
        port,
        uiPort: await nextFreePort(options.ports?.ui ?? DEFAULT_PORTS.ui, [port]),
        databaseFile: path.join(folder, 'temporal.db'),
        namespace: 'default',
        logFile: path.join(folder, 'temporal.log'),
        onPid: (pid) => noteAlive(note, 'temporal', pid),
      }),
  );
  return { server, cli };
}

async function onFreePort<T>(
  name: string,
  from: number,
  options: StartOptions,
  start: (port: number) => Promise<T>,
): Promise<T> {
  let first = from;
  for (let tries = 1; ; tries += 1) {
    const port = await nextFreePort(first);
    try {
      const started = await start(port);
      if (port !== from) options.onProgress?.(`port ${from} is taken; ${name} listens on ${port}`);
      return started;
    } catch (error) {
      const isTaken = await isPortTaken(port);
      if (tries === PORT_TRIES || !(isTaken || isAddressInUse(error))) throw error;
      first = isTaken ? port + 1 : port;
    }
  }
}

/** A server has more ports than the one it is known by. */
function isAddressInUse(error: unknown): boolean {
  return error instanceof Error && /address already in use/i.test(error.message);
}

function noteAlive(note: NoteProcess, server: ServerName, pid: number): void {
  const identity = identityOf(pid);
  if (identity !== null) note({ ...identity, server });
}

function postgresRecord(server: EmbeddedPostgres | null): RunningServers['postgres'] {
  const identity = server === null ? null : identityOf(server.pid);
  if (server === null || identity === null) return null;
  const { url, port, dataDir, logFile, version } = server;
  return { ...identity, url, port, dataDir, logFile, version };
}

function temporalRecord(
  options: StartOptions,
  started: { server: EmbeddedTemporal; cli: TemporalCli } | null,
): RunningServers['temporal'] {
  const identity = started === null ? null : identityOf(started.server.pid);
  if (started === null || identity === null) return null;
  const { address, port, uiPort, logFile } = started.server;
  return {
    ...identity,
    address,
    namespace: 'default',
    port,
    uiUrl: `http://127.0.0.1:${uiPort}`,
    databaseFile: path.join(onceperFolder(options.projectDir), 'temporal.db'),
    logFile,
    cli: started.cli.file,
    version: started.cli.version,
  };
}
