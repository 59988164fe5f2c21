import { existsSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { delimiter, join } from 'node:path';
import { startGuarded } from '../embedded/guarded-process.ts';
import { freePort } from '../embedded/ports.ts';
import type { ExpiringLock } from './expiring-lock.ts';
import { until } from './until.ts';

/** The redis-server of this machine, or null where none is on the path. */
export function findRedis(path: string): string | null {
  const files = path.split(delimiter).map((folder) => join(folder, 'redis-server'));
  return files.find((file) => existsSync(file)) ?? null;
}

/** A redis-server of a drill's own. */
export interface Redis {
  readonly port: number;
  readonly ask: Ask;
  stop(): Promise<void>;
}

/** Starts that Redis in memory, for the length of a drill. */
export async function startRedis(file: string, folder: string, args: readonly string[] = []): Promise<Redis> {
  const port = await freePort();
  const server = await startGuarded({
    file,
    args: ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--appendonly', 'no', ...args],
    cwd: folder,
    env: { PATH: '/usr/bin:/bin' },
    logFile: join(folder, `redis-${port}.log`),
    stopSignal: 'TERM',
    graceMs: 5_000,
  });
  const ask = await until('Redis to answer', () => connectRedis(port), 10_000);
  return {
    port,
    ask,
    async stop() {
      await server.stop();
    },
  };
}

/** Starts a Redis, and locks with `SET NX PX` in it. */
export async function createRedisLock(file: string, folder: string): Promise<ExpiringLock> {
  const redis = await startRedis(file, folder);
  return lockIn('SET NX PX in Redis', redis.ask, () => redis.stop());
}

/** The lock of `SET NX PX` in whatever Redis is asked. */
export function lockIn(name: string, ask: Ask, close: () => Promise<void>): ExpiringLock {
  return {
    name,
    async take(holder, forMs, lock = 'payday') {
      return (await ask(['SET', lock, holder, 'NX', 'PX', String(forMs)])) === 'OK';
    },
    isHeldBy: async (holder) => (await ask(['GET', 'payday'])) === holder,
    async giveBack(holder) {
      // The usual script: compare and delete in one step, so that nobody deletes another one's lock.
      const script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end";
      await ask(['EVAL', script, '1', 'payday', holder]);
    },
    close,
  };
}

export type Ask = (words: readonly string[]) => Promise<string | null>;

/** A connection that speaks as much of Redis's protocol as a lock needs: one question at a time, one answer in one line or text. */
async function connectRedis(port: number): Promise<Ask | null> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const isConnected = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  });
  if (!isConnected) return null;
  socket.on('error', () => socket.destroy());
  let turn: Promise<unknown> = Promise.resolve();
  return (words) => {
    const answer = turn.then(() => exchange(socket, words));
    turn = answer.catch(() => undefined);
    return answer;
  };
}

function exchange(socket: Socket, words: readonly string[]): Promise<string | null> {
  return new Promise((resolve, reject) => {
    let text = '';
    const read = (data: Buffer) => {
      text += data.toString('utf8');
      const answer = parseAnswer(text);
      if (answer === undefined) return;
      socket.off('data', read);
      if (answer instanceof Error) reject(answer);
      else resolve(answer);
    };
    socket.on('data', read);
    socket.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`);
  });
}

/** Undefined while the answer is not whole. */
function parseAnswer(text: string): string | null | Error | undefined {
  const end = text.indexOf('\r\n');
  if (end < 0) return undefined;
  const [kind, line] = [text[0], text.slice(1, end)];
  if (kind === '-') return new Error(`Redis answered ${line}`);
  if (kind !== '$') return line;
  if (line === '-1') return null;
  const value = text.slice(end + 2, end + 2 + Number(line));
  return text.length < end + 2 + Number(line) + 2 ? undefined : value;
}
