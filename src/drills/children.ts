import { type ChildProcess, fork } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { packageFolder } from '../embedded/project-folder.ts';
import { OnceperError } from '../kernel/error.ts';
import { parsedLine } from './log-events.ts';

/** A process of ours that runs beside the demo: its log goes to a file, and it ends when the demo does. */
export interface Child {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** SIGTERM, then waits until it has drained and gone; resolves with its exit code. */
  stop(): Promise<number | null>;
  /** SIGKILL, as a machine that dies; resolves when it is gone. */
  kill(): Promise<void>;
  signal(name: NodeJS.Signals): void;
}

/** What a process logs when it is ready to work. */
const READY: Readonly<Record<string, string>> = {
  worker: 'worker_started',
  relay: 'relay_started',
  gateway: 'gateway_started',
};

/**
 * Starts `onceper worker`, `relay` or `gateway` as a child and waits until it logs that it is ready; returns that event too.
 * The IPC channel tells the child when this process is gone, however that came. Throws OnceperError `child_ended` with the
 * last thing it logged where it ends before.
 */
export async function startChild(
  name: string,
  options: {
    readonly args?: readonly string[];
    readonly environment: Readonly<Record<string, string>>;
    readonly logFile: string;
  },
): Promise<Child & { readonly ready: Readonly<Record<string, unknown>> }> {
  const { logFile } = options;
  mkdirSync(dirname(logFile), { recursive: true });
  const log = createWriteStream(logFile, { flags: 'a' });
  const child = fork(join(packageFolder(), 'bin/onceper.mjs'), [name, ...(options.args ?? [])], {
    env: options.environment,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // Ctrl-C at a terminal reaches the whole group at once; the demo ends its children in their order itself.
    detached: true,
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const ready = await readyOf(child, name, ended, (line) => log.write(`${line}\n`), logFile);
  const closeLog = () => log.end();
  return {
    name,
    pid: child.pid ?? 0,
    logFile,
    ready,
    stop: () => stopChild(child, ended, closeLog),
    async kill() {
      child.kill('SIGKILL');
      await ended;
      closeLog();
    },
    signal: (signal) => void child.kill(signal),
  };
}

async function readyOf(
  child: ChildProcess,
  name: string,
  ended: Promise<number | null>,
  keep: (line: string) => void,
  logFile: string,
): Promise<Readonly<Record<string, unknown>>> {
  let last = '';
  const isReady = new Promise<Readonly<Record<string, unknown>>>((resolve) => {
    if (child.stderr === null) return;
    createInterface({ input: child.stderr }).on('line', (line) => {
      keep(line);
      last = line;
      const event = parsedLine(line);
      if (event['event'] === READY[name]) resolve(event);
    });
  });
  const first = await Promise.race([isReady, ended]);
  if (typeof first === 'object' && first !== null) return first;
  throw new OnceperError({
    code: 'child_ended',
    message: `onceper ${name} ended with ${first} before it was ready: ${last}`,
    remedy: `read ${logFile}`,
    at: name,
  });
}

async function stopChild(
  child: ChildProcess,
  ended: Promise<number | null>,
  closed: () => void,
): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGTERM');
    // One that a drill has stopped in its tracks must wake up to hear it.
    child.kill('SIGCONT');
  }
  const code = await ended;
  closed();
  return code;
}
