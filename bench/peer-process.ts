import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { lastLines } from '../src/embedded/guarded-process.ts';
import type { PeerReply, PeerRequest, PeerServers } from './peer.ts';

/** What the slowest step takes is some seconds; a peer that is silent for so long hangs. */
const ANSWER_WITHIN_MS = 120_000;

/** A peer in a process of its own. It ends when its stdin is closed, so it can't outlive this one. */
export interface PeerProcess {
  /** Rejects with the peer's own error, and where it ended or was silent. */
  ask(request: PeerRequest): Promise<PeerReply>;
  stop(): Promise<void>;
}

/** Starts `bench/peers/NAME.ts` on that Node. What it prints goes to `logFile`. */
export function startPeer(of: {
  readonly name: string;
  readonly node: string;
  readonly servers: PeerServers;
  readonly logFile: string;
}): PeerProcess {
  const log = openSync(of.logFile, 'a');
  const child = spawn(
    of.node,
    [
      '--disable-warning=ExperimentalWarning',
      path.join(import.meta.dirname, 'peers/child.ts'),
      of.name,
      JSON.stringify(of.servers),
    ],
    {
      stdio: ['pipe', 'pipe', log],
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], NODE_ENV: 'production' },
    },
    // The types know streams for words only, not for a descriptor beside them.
  ) as ChildProcessByStdio<Writable, Readable, null>;
  closeSync(log);
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  // The end of the process is what is reported, not the pipe that broke with it.
  child.stdin.on('error', () => undefined);
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async ask(request) {
      child.stdin.write(`${JSON.stringify(request)}\n`);
      const next = await within(answers.next(), child, `${of.name} to ${request.verb}`);
      if (next.done === true) throw new Error(`its process ended: ${lastLines(of.logFile, 3)}`);
      const reply = JSON.parse(next.value) as PeerReply;
      if (reply.kind === 'failed') throw new Error(reply.message);
      return reply;
    },
    async stop() {
      child.stdin.end();
      const insist = setTimeout(() => child.kill('SIGKILL'), 5_000);
      await exited;
      clearTimeout(insist);
    },
  };
}

async function within<T>(answer: Promise<T>, child: ChildProcess, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`${ANSWER_WITHIN_MS / 1_000} s were not enough for ${what}`));
    }, ANSWER_WITHIN_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
