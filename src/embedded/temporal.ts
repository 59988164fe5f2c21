import { mkdirSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { OnceperError } from '../kernel/error.ts';
import { type Exit, type GuardedProcess, lastLines, startGuarded } from './guarded-process.ts';
import { isListener } from './ports.ts';

/** A Temporal dev server that answers for its namespace. */
export interface EmbeddedTemporal {
  /** Host and port of the gRPC front end, as TEMPORAL_ADDRESS takes it. */
  readonly address: string;
  readonly port: number;
  readonly uiPort: number | null;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when the server has gone, whoever ended it. */
  readonly exited: Promise<Exit>;
  /** Stops in order, which flushes the database file; resolves when it has gone. */
  readonly stop: () => Promise<void>;
}

const READY_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 10_000;

/**
 * Starts Temporal's dev server on 127.0.0.1: state in `databaseFile`, or in memory where that is null; its UI on `uiPort`,
 * or none. The server ends when this process ends, in whatever way. Throws `temporal_not_started` with the end of its log.
 */
export async function startTemporal(options: {
  /** The file of the Temporal CLI (`findTemporalCli`). */
  readonly cli: string;
  readonly port: number;
  readonly uiPort: number | null;
  readonly databaseFile: string | null;
  readonly namespace: string;
  /** Registered at the start, for example `{ OnceperJob: 'Keyword' }`. */
  readonly searchAttributes?: Readonly<Record<string, string>>;
  /** Variables for the server beside its own, for example ZONEINFO, the folder of its zone files. */
  readonly env?: Readonly<Record<string, string>>;
  /** Where the server's output goes; a file in the temporary folder where it is not given. */
  readonly logFile?: string;
  /** Called with the server's pid as soon as there is one, before it is ready. */
  readonly onPid?: (pid: number) => void;
}): Promise<EmbeddedTemporal> {
  const logFile = options.logFile ?? path.join(tmpdir(), `onceper-temporal-${options.port}.log`);
  mkdirSync(path.dirname(logFile), { recursive: true });
  const server = await startGuarded({
    file: options.cli,
    args: serverArguments(options),
    cwd: path.dirname(logFile),
    // TEMPORAL_* variables of this shell are about a client and some other server.
    env: { PATH: '/usr/bin:/bin', HOME: homedir(), TZ: 'UTC', ...options.env },
    logFile,
    stopSignal: 'TERM',
    graceMs: STOP_WITHIN_MS,
  });
  options.onPid?.(server.pid);
  const stop = async (): Promise<void> => {
    await server.stop();
  };
  const address = `127.0.0.1:${options.port}`;
  try {
    await waitUntilReady(options, server, logFile);
  } catch (error) {
    await stop();
    throw error;
  }
  const { port, uiPort } = options;
  return { address, port, uiPort, pid: server.pid, logFile, exited: server.exited, stop };
}

function serverArguments(options: Parameters<typeof startTemporal>[0]): string[] {
  return [
    'server',
    'start-dev',
    '--ip=127.0.0.1',
    `--port=${options.port}`,
    ...(options.uiPort === null ? ['--headless'] : [`--ui-port=${options.uiPort}`]),
    // A commit is on disk as before, by one write in place of a journal's several: a hop of a workflow takes two thirds.
    ...(options.databaseFile === null
      ? []
      : [
          `--db-filename=${options.databaseFile}`,
          '--sqlite-pragma=journal_mode=WAL',
          '--sqlite-pragma=synchronous=FULL',
        ]),
    ...(options.namespace === 'default' ? [] : [`--namespace=${options.namespace}`]),
    ...Object.entries(options.searchAttributes ?? {}).map(([name, type]) => `--search-attribute=${name}=${type}`),
  ];
}

async function waitUntilReady(
  { port, namespace }: { readonly port: number; readonly namespace: string },
  server: GuardedProcess,
  logFile: string,
): Promise<void> {
  const address = `127.0.0.1:${port}`;
  const until = performance.now() + READY_WITHIN_MS;
  while (server.isRunning() && performance.now() < until) {
    if (isListener(server.pid, port) && (await answers(address, namespace))) return;
    await delay(25);
  }
  throw new OnceperError({
    code: 'temporal_not_started',
    message: `Temporal ${server.isRunning() ? 'was not ready in time' : 'ended while starting'}: ${lastLines(logFile, 3)}`,
    remedy: `read ${logFile}, or set TEMPORAL_ADDRESS to a server of your own`,
    at: address,
  });
}

/** An open port is not enough: workflows can start once the namespace is there. */
async function answers(address: string, namespace: string): Promise<boolean> {
  let connection: Connection;
  try {
    connection = await Connection.connect({ address, connectTimeout: 2_000 });
  } catch {
    return false;
  }
  try {
    await connection.workflowService.describeNamespace({ namespace });
    return true;
  } catch {
    return false;
  } finally {
    await connection.close();
  }
}
