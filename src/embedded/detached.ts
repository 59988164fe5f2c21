import { fork } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { OnceperError } from '../kernel/error.ts';
import { type Addresses, addressesOf } from './addresses.ts';
import { lastLines } from './guarded-process.ts';
import { openOnceperFolder } from './private-folder.ts';
import { onceperFolder, type RunningServers, runningServers } from './server-state.ts';
import type { StartOptions } from './start-servers.ts';
import { storageFault } from './storage-fault.ts';

export interface UpDetached {
  readonly kind: 'started' | 'already_running';
  readonly servers: RunningServers;
  readonly addresses: Addresses;
}

/** What the supervisor tells its starter: sentences on the way, then one of the last two. */
const Report = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('progress'), sentence: z.string() }),
  z.object({ kind: z.enum(['started', 'already_running']) }),
  z.object({
    kind: z.literal('failed'),
    code: z.string(),
    message: z.string(),
    remedy: z.string(),
    at: z.string().nullable(),
  }),
]);
export type Report = z.infer<typeof Report>;

/** The options as they cross to the supervisor, which tells its progress by messages. */
export type SupervisorOptions = Omit<StartOptions, 'onProgress'>;

/**
 * Like `up`, with a supervisor of its own that outlives this process and its terminal, until `down`. Resolves when the
 * servers are ready; throws what the start threw, and `supervisor_ended` where it died without a word.
 */
export async function upDetached(options: StartOptions): Promise<UpDetached> {
  const { onProgress, ...passed } = options;
  const running = runningServers(options.projectDir);
  if (running !== null) return { kind: 'already_running', servers: running, addresses: addressesOf(options, running) };
  const kind = await superviseElsewhere(passed, onProgress ?? (() => undefined));
  const servers = runningServers(options.projectDir);
  if (servers === null) {
    throw new OnceperError({
      code: 'supervisor_ended',
      message: 'the servers were ready and have ended since',
      remedy: `read ${logFileOf(options.projectDir)} and start again`,
    });
  }
  return { kind, servers, addresses: addressesOf(options, servers) };
}

async function superviseElsewhere(
  options: SupervisorOptions,
  onProgress: (sentence: string) => void,
): Promise<'started' | 'already_running'> {
  const logFile = logFileOf(options.projectDir);
  const log = openLog(logFile, options);
  const extension = path.extname(import.meta.filename);
  const supervisor = fork(path.join(import.meta.dirname, `supervisor${extension}`), {
    cwd: options.projectDir,
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
    // From the sources it runs through tsx, from a build as it is.
    execArgv: extension === '.ts' ? ['--import', import.meta.resolve('tsx')] : [],
  });
  closeSync(log);
  // Its last message may still be on the way when it has exited; none comes after the channel is closed.
  const exited = new Promise<number | null>((resolve) => supervisor.once('exit', resolve));
  const silence = new Promise<void>((resolve) => supervisor.once('disconnect', resolve)).then(() => exited);
  try {
    return await new Promise((resolve, reject) => {
      supervisor.on('message', (message) => {
        const report = Report.parse(message);
        if (report.kind === 'progress') onProgress(report.sentence);
        else if (report.kind === 'failed') reject(new OnceperError(report));
        else resolve(report.kind);
      });
      supervisor.once('error', reject);
      void silence.then((code) => reject(endedWithoutAWord(code, logFile)));
      // By message, not by argument: a connection string may hold a password, and arguments are seen by everyone.
      supervisor.send(options);
    });
  } finally {
    if (supervisor.connected) supervisor.disconnect();
    supervisor.unref();
  }
}

function endedWithoutAWord(code: number | null, logFile: string): OnceperError {
  return new OnceperError({
    code: 'supervisor_ended',
    message: `the supervisor of the servers ended (${code ?? 'by a signal'}): ${lastLines(logFile, 3)}`,
    remedy: `read ${logFile} and start again`,
    at: logFile,
  });
}

function openLog(file: string, { projectDir, databaseUrl }: SupervisorOptions): number {
  try {
    openOnceperFolder(projectDir, databaseUrl === null);
    return openSync(file, 'a', 0o600);
  } catch (error) {
    throw storageFault(error, path.dirname(file));
  }
}

function logFileOf(projectDir: string): string {
  return path.join(onceperFolder(projectDir), 'supervisor.log');
}
