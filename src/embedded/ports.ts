import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { OnceperError } from '../kernel/error.ts';

const LOOPBACK = '127.0.0.1';

/**
 * A port of the loopback interface that nobody listens on at this moment, picked at random below those that the system
 * hands to outgoing connections: one of these would be taken again before a server has come as far as to listen on it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(18_000, 32_000);
    if (!(await isPortTaken(port))) return port;
  }
}

/** Whether somebody listens on this port of the loopback interface, or we may not. */
export function isPortTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(true));
    probe.listen(port, LOOPBACK, () => probe.close(() => resolve(false)));
  });
}

/** The first port from `from` on that is free and not in `except`. Throws `no_free_port` after a hundred taken ones. */
export async function nextFreePort(from: number, except: readonly number[] = []): Promise<number> {
  for (let port = from; port < from + 100; port += 1) {
    if (!except.includes(port) && !(await isPortTaken(port))) return port;
  }
  throw new OnceperError({
    code: 'no_free_port',
    message: `ports ${from} to ${from + 99} of 127.0.0.1 are all taken`,
    remedy: 'stop what listens there, or name a free port',
    at: `127.0.0.1:${from}`,
  });
}

/**
 * Whether this process of our own user listens on the port, so that an answer from there is its answer and not that of
 * somebody who took the port a moment earlier. True where the system does not tell.
 */
export function isListener(pid: number, port: number): boolean {
  try {
    const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
    const inodes = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[1] === local && fields[3] === '0A')
      .map((fields) => `socket:[${fields[9]}]`);
    return readdirSync(`/proc/${pid}/fd`).some((fd) => inodes.includes(linkOf(`/proc/${pid}/fd/${fd}`)));
  } catch {
    return true;
  }
}

/** A descriptor may be closed while the folder is read. */
function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
}
