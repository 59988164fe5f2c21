import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

const FOLDER = import.meta.dirname;
const WITHIN_MS = 300_000;
/** From here on Node runs TypeScript as it is, and all peers say that they work. */
const PEERS_NEED = [22, 18] as const;

/** Installs what `bench/package-lock.json` pins unless it is there; null, or why it couldn't be. */
export function installPeers(): string | null {
  if (isInstalled()) return null;
  process.stdout.write('installing the peers (npm ci in bench/)\n');
  const { status, stderr, error } = spawnSync('npm', ['ci', '--no-fund', '--no-audit', '--loglevel=error'], {
    cwd: FOLDER,
    encoding: 'utf8',
    timeout: WITHIN_MS,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (error !== undefined) return `npm could not be run: ${error.message}`;
  if (status === 0) return null;
  const lines = stderr.split('\n').filter((line) => line.trim() !== '');
  return `npm ci in bench/ failed: ${lines.slice(0, 2).join('; ') || `code ${status}`}`;
}

/** The Node that the peers run on: this one where it is new enough, else the one from npm; null where there is none. */
export function nodeOfPeers(): string | null {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > PEERS_NEED[0] || (major === PEERS_NEED[0] && minor >= PEERS_NEED[1])) return process.execPath;
  const names = [`node-${process.platform}-${process.arch}`, `node-bin-${process.platform}-${process.arch}`];
  return (
    names.map((name) => path.join(FOLDER, 'node_modules', name, 'bin/node')).find((file) => existsSync(file)) ?? null
  );
}

/** Whether each dependency is there in the version that is pinned. */
function isInstalled(): boolean {
  const { dependencies } = JSON.parse(readFileSync(path.join(FOLDER, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  return Object.entries(dependencies).every(([name, version]) => {
    const file = path.join(FOLDER, 'node_modules', name, 'package.json');
    return existsSync(file) && (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version === version;
  });
}
