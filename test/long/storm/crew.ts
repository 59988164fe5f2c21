import { type ChildProcess, fork } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { waitFor } from '../../support/wait.ts';
import { pause } from './pause.ts';

/** A place for one process of the product: whoever dies is started again, as any init system does. */
export interface Post {
  readonly name: string;
  /** Waits until its process has said that it works, and signals it; false where that took too long. */
  signal(signal: NodeJS.Signals): Promise<boolean>;
  /** The same to a process that a signal has stopped. */
  wake(): void;
  /** What the next process inherits beside the environment of all. */
  readonly changes: Record<string, string>;
  /** How often a process was started here. */
  starts(): number;
  isReady(): boolean;
  untilReady(timeoutMs: number): Promise<void>;
  end(): Promise<void>;
}

const READY: Readonly<Record<string, string>> = {
  worker: 'worker_started',
  relay: 'relay_started',
  gateway: 'gateway_started',
  webhooks: 'webhooks_started',
};

/** Where a post is: its command, its log, and what is told of a process that works. */
interface Order {
  readonly root: string;
  readonly folder: string;
  readonly name: string;
  readonly command: string;
  readonly args?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly onReady?: () => Promise<void>;
}

/** Fills a post, for good until `end`. */
export function openPost(order: Order): Post {
  const changes: Record<string, string> = {};
  const log = createWriteStream(join(order.folder, 'logs', `${order.name}.log`), { flags: 'a' });
  let child: ChildProcess;
  let isReady = false;
  let isOver = false;
  let starts = 0;
  const gone: { promise: Promise<void> } = { promise: Promise.resolve() };

  function start(): void {
    starts += 1;
    isReady = false;
    const started = fork(join(order.root, 'bin/onceper.mjs'), [order.command, ...(order.args ?? [])], {
      env: { ...order.environment, ...changes },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // Not those of the storm, whose sources are compiled as they are loaded.
      execArgv: [],
      detached: true,
    });
    child = started;
    if (started.stderr !== null) {
      createInterface({ input: started.stderr }).on('line', (line) => {
        log.write(`${line}\n`);
        if (!line.includes(`"${READY[order.command]}"`) || started !== child) return;
        void (order.onReady?.() ?? Promise.resolve()).then(() => {
          isReady = started === child && started.exitCode === null && started.signalCode === null;
        });
      });
    }
    gone.promise = new Promise((resolve) => {
      started.once('exit', () => {
        isReady = false;
        resolve();
        if (!isOver) void pause(200).then(() => (isOver ? undefined : start()));
      });
    });
  }
  start();
  const ready = (timeoutMs: number) =>
    waitFor(() => isReady, { what: `${order.name} to work`, timeoutMs, everyMs: 50 });
  return {
    name: order.name,
    changes,
    starts: () => starts,
    isReady: () => isReady,
    async untilReady(timeoutMs) {
      await ready(timeoutMs);
    },
    async signal(signal) {
      try {
        await ready(15_000);
      } catch {
        return false;
      }
      return child.kill(signal);
    },
    wake: () => void child.kill('SIGCONT'),
    async end() {
      isOver = true;
      child.kill('SIGTERM');
      child.kill('SIGCONT');
      const last = child;
      const isGone = () => last.exitCode !== null || last.signalCode !== null;
      try {
        await waitFor(isGone, { what: `${order.name} to end`, timeoutMs: 20_000, everyMs: 50 });
      } catch {
        last.kill('SIGKILL');
      }
      await gone.promise;
      log.end();
    },
  };
}
