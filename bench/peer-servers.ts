import { execFileSync } from 'node:child_process';
import { homedir } from 'node:os';
import path from 'node:path';
import { findRedis } from '../src/drills/redis-lock.ts';
import { until } from '../src/drills/until.ts';
import { startGuarded } from '../src/embedded/guarded-process.ts';
import { freePort, isPortTaken } from '../src/embedded/ports.ts';
import { startTemporal } from '../src/embedded/temporal.ts';
import { findTemporalCli } from '../src/embedded/temporal-cli.ts';

/** A server beside PostgreSQL, or why there is none. */
export type PeerServer =
  | { readonly kind: 'started'; readonly version: string; readonly port: number; readonly stop: () => Promise<unknown> }
  | { readonly kind: 'absent'; readonly reason: string };

/** The redis-server on the path, as BullMQ's documentation asks for it. It dies with this process. */
export async function startRedis(folder: string): Promise<PeerServer> {
  const file = findRedis(process.env['PATH'] ?? '');
  if (file === null) return { kind: 'absent', reason: 'there is no redis-server on the path' };
  const port = await freePort();
  const settings = {
    bind: '127.0.0.1',
    port: String(port),
    dir: folder,
    save: '',
    appendonly: 'yes',
    appendfsync: 'everysec',
    'maxmemory-policy': 'noeviction',
  };
  try {
    const server = await startGuarded({
      file,
      args: Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
      cwd: folder,
      env: { PATH: '/usr/bin:/bin' },
      logFile: path.join(folder, 'redis.log'),
      stopSignal: 'TERM',
      graceMs: 5_000,
    });
    await until('Redis to listen', () => isPortTaken(port), 10_000);
    const version =
      /v=(\S+)/.exec(execFileSync(file, ['--version'], { encoding: 'utf8' }))?.[1] ?? 'of an unknown version';
    return { kind: 'started', version: `Redis ${version}`, port, stop: server.stop };
  } catch (error) {
    return absent(error);
  }
}

/** Temporal's dev server with a database file; without one it would forget its workflows when it ends. */
export async function startDevServer(folder: string): Promise<PeerServer> {
  try {
    const cli = await findTemporalCli({
      explicit: process.env['TEMPORAL_CLI'] ?? null,
      path: process.env['PATH'] ?? '',
      cacheDir: path.join(process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache'), 'onceper'),
    });
    const server = await startTemporal({
      cli: cli.file,
      port: await freePort(),
      uiPort: null,
      databaseFile: path.join(folder, 'temporal.db'),
      namespace: 'default',
      logFile: path.join(folder, 'temporal.log'),
    });
    return { kind: 'started', version: `Temporal CLI ${cli.version}`, port: server.port, stop: server.stop };
  } catch (error) {
    return absent(error);
  }
}

function absent(error: unknown): PeerServer {
  return { kind: 'absent', reason: error instanceof Error ? error.message : String(error) };
}
