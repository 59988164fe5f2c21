import { setTimeout as delay } from 'node:timers/promises';
import { OnceperError } from '../kernel/error.ts';
import { visible } from '../kernel/visible.ts';
import type { Report, SupervisorOptions } from './detached.ts';
import { lockHolder } from './project-lock.ts';
import { up } from './up.ts';

/*
 * The program that `up --detach` leaves running: it starts the servers, tells its starter, and stays until a signal asks it
 * to stop or a server ends, which stops the other too.
 */

/** Resolves when the report is on its way, so that an exit can't overtake it. */
function tell(report: Report): Promise<void> {
  return new Promise((resolve) => {
    // A starter that was interrupted no longer listens; the servers are wanted all the same.
    if (process.send === undefined || !process.connected) resolve();
    else process.send(report, undefined, undefined, () => resolve());
  });
}

function note(sentence: string): void {
  process.stderr.write(`${new Date().toISOString()} ${visible(sentence)}\n`);
}

async function supervise(options: SupervisorOptions): Promise<number> {
  const asked = new Promise<'signal'>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve('signal'));
  });
  const result = await up({ ...options, onProgress: (sentence) => void tell({ kind: 'progress', sentence }) });
  await tell({ kind: result.kind });
  if (result.kind === 'already_running') return 0;
  note(
    `supervising pid ${result.servers.postgres?.pid ?? '-'} (PostgreSQL), ${result.servers.temporal?.pid ?? '-'} (Temporal)`,
  );
  const why = await Promise.race([asked, disowned(options.projectDir), result.ended]);
  await result.stop();
  if (why === 'signal' || why === 'disowned') {
    note(why === 'signal' ? 'stopped as asked' : 'stopped, since .onceper/ is gone');
    return 0;
  }
  note(`${why.server} ended by itself (${why.code}), so all were stopped; its log is ${why.logFile}`);
  return 1;
}

/** When somebody deleted `.onceper/`, no command could ever find these servers to stop them. */
async function disowned(projectDir: string): Promise<'disowned'> {
  while (lockHolder(projectDir)?.pid === process.pid) await delay(2_000, undefined, { ref: false });
  return 'disowned';
}

async function main(options: SupervisorOptions): Promise<void> {
  try {
    process.exitCode = await supervise(options);
  } catch (error) {
    note(error instanceof Error ? (error.stack ?? error.message) : String(error));
    const fault = error instanceof OnceperError ? error : unexpected(error);
    await tell({ kind: 'failed', code: fault.code, message: fault.message, remedy: fault.remedy, at: fault.at });
    process.exitCode = 1;
  }
  if (process.connected) process.disconnect();
}

function unexpected(error: unknown): OnceperError {
  return new OnceperError({
    code: 'unexpected',
    message: error instanceof Error ? error.message : String(error),
    remedy: 'report it with the file .onceper/supervisor.log',
    cause: error,
  });
}

process.once('message', (options: SupervisorOptions) => void main(options));
