import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { freePort } from '../../src/embedded/ports.ts';
import { waitFor } from './wait.ts';

/** Pinned: its fixtures and its checks of parameters are of one version of Stripe's API description. */
const MODULE = 'github.com/stripe/stripe-mock@v0.195.0';

/**
 * The path of stripe-mock: STRIPE_MOCK, else the one in the user's cache folder, which Go builds there once (half a minute).
 * Null with the reason where there is neither, so that what needs it is skipped by name.
 */
export function findStripeMock(): { readonly path: string } | { readonly path: null; readonly why: string } {
  const stated = process.env['STRIPE_MOCK'];
  if (stated !== undefined && existsSync(stated)) return { path: stated };
  const cache = process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache');
  const folder = path.join(cache, 'onceper', path.basename(MODULE));
  const binary = path.join(folder, 'stripe-mock');
  if (existsSync(binary)) return { path: binary };
  mkdirSync(folder, { recursive: true });
  try {
    const env = { ...process.env, GOBIN: folder, GOFLAGS: '-p=1' };
    execFileSync('go', ['install', MODULE], { env, stdio: ['ignore', 'ignore', 'pipe'], timeout: 300_000 });
    return { path: binary };
  } catch (error) {
    const isAbsent = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    return { path: null, why: isAbsent ? 'neither stripe-mock nor Go is here' : `Go could not build ${MODULE}` };
  }
}

/** Starts stripe-mock on a free port of this machine. */
export async function startStripeMock(binary: string): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const address = `127.0.0.1:${await freePort()}`;
  const child: ChildProcess = spawn(binary, ['-http-addr', address], { stdio: 'ignore' });
  const url = `http://${address}`;
  await waitFor(async () => (await fetch(url)).status > 0, { what: 'stripe-mock to answer', timeoutMs: 20_000 });
  return {
    url,
    async stop() {
      child.kill();
      await once(child, 'exit');
    },
  };
}
