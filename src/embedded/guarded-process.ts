import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { OnceperError } from '../kernel/error.ts';
import { endProcess, identityOf, type ProcessIdentity, signalProcess } from './process-identity.ts';

/** A server process that dies with the process that started it. */
export interface GuardedProcess {
  /** The server's own pid, not the guard's. */
  readonly pid: number;
  /** Resolves when the server has gone, however it went; never rejects. */
  readonly exited: Promise<Exit>;
  /** True until `exited` resolves. */
  readonly isRunning: () => boolean;
  /** Asks with the stop signal, insists with SIGKILL after `graceMs`; resolves when the process has gone. */
  readonly stop: () => Promise<Exit>;
}

export interface Exit {
  /** The exit code, 128 + n for an end by signal n. */
  readonly code: number;
}

export interface GuardedCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** stdout and stderr are appended here. */
  readonly logFile: string;
  /** The signal that stops this server in order: what it gets when it is stopped and when its parent has died. */
  readonly stopSignal: 'INT' | 'TERM';
  readonly graceMs: number;
  /** The user to run as, when started by root. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
}

/*
 * The guard is a shell between us and the server. It holds the reading end of our pipe: when we close the pipe, or die in
 * whatever way (the kernel closes it), `read` returns and the server gets its stop signal. A signal handler or an exit
 * hook of ours would not run after a kill -9. The server inherits neither end: holding them, it would keep itself alive. The
 * files that it makes are its own.
 */
const GUARD = `umask 077
exec 4<&0
"$@" </dev/null 3>&- 4<&- &
server=$!
echo $server >&3
exec 3>&-
{ read -r _ <&4; kill -s $STOP_SIGNAL $server 2>/dev/null; } >/dev/null 2>&1 &
watch=$!
wait $server
code=$?
kill $watch 2>/dev/null
exit $code`;

/**
 * Starts a command under a guard, in a process group of its own, so that Ctrl-C at a terminal reaches only us and the
 * order of stopping stays ours. Rejects with `process_not_started` where the shell or the user can't be had.
 */
export async function startGuarded(command: GuardedCommand): Promise<GuardedProcess> {
  const log = openSync(command.logFile, 'a', 0o600);
  let guard: ChildProcess;
  try {
    guard = spawn('/bin/sh', ['-c', GUARD, 'sh', command.file, ...command.args], {
      cwd: command.cwd,
      env: { ...command.env, STOP_SIGNAL: command.stopSignal },
      stdio: ['pipe', log, log, 'pipe'],
      detached: true,
      ...command.user,
    });
  } finally {
    closeSync(log);
  }
  const guarded = new Promise<Exit>((resolve) => {
    guard.once('exit', (code, signal) => resolve({ code: code ?? (signal === null ? 1 : 128) }));
    guard.once('error', () => resolve({ code: 127 }));
  });
  const pid = await reportedPid(guard, command.file);
  const server = identityOf(pid);
  let running = true;
  const exited = guarded.then(async (exit) => {
    // A guard that was killed itself leaves a server that nobody watches: it must not be taken for gone.
    if (server !== null) await endProcess(server, { signal: `SIG${command.stopSignal}`, graceMs: command.graceMs });
    running = false;
    return exit;
  });
  return {
    pid,
    exited,
    isRunning: () => running,
    stop: () => stopGuarded(guard, server, exited, command.graceMs),
  };
}

/** The last lines that a server wrote, as one line for the message of an error. */
export function lastLines(logFile: string, count: number): string {
  try {
    return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-count).join(' | ');
  } catch {
    return '(nothing was logged)';
  }
}

async function reportedPid(guard: ChildProcess, file: string): Promise<number> {
  const report = guard.stdio[3];
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void =>
      reject(
        new OnceperError({
          code: 'process_not_started',
          message: `could not start ${file}: ${cause instanceof Error ? cause.message : String(cause)}`,
          remedy: 'check that the file exists and may be executed by this user',
          at: file,
        }),
      );
    guard.once('error', fail);
    if (report === undefined || report === null || !('read' in report)) return fail('no pipe to the guard');
    let text = '';
    report.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
    });
    report.once('end', () => {
      const pid = Number.parseInt(text, 10);
      if (Number.isInteger(pid)) resolve(pid);
      else fail(`the guard reported "${text.trim()}"`);
    });
  });
}

async function stopGuarded(
  guard: ChildProcess,
  server: ProcessIdentity | null,
  exited: Promise<Exit>,
  graceMs: number,
): Promise<Exit> {
  guard.stdin?.destroy();
  const insist = setTimeout(() => {
    if (server !== null) signalProcess(server, 'SIGKILL');
  }, graceMs);
  try {
    return await exited;
  } finally {
    clearTimeout(insist);
  }
}
