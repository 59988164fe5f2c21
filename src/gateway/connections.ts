import type { LookupFunction } from 'node:net';
import { buildConnector, Pool } from 'undici';

/** What a client shows of itself over TLS, and whom it believes: PEM texts. Without `ca` it believes the system's. */
export interface TlsIdentity {
  readonly cert?: string;
  readonly key?: string;
  readonly ca?: string;
}

interface Connecting {
  readonly connections: number;
  /** Bounds connecting, and each silence of an exchange; the exchange bounds itself as a whole. */
  readonly timeoutMs: number;
  readonly tls?: TlsIdentity;
  /** Refuses an address to which a connection would go, or has come about; null where it may. */
  readonly refuse?: (address: string) => Error | null;
  readonly lookup?: LookupFunction;
}

const notConnected = new WeakSet<Error>();

/** True where no connection stood, so that no byte can have left. A reset of a standing one proves nothing. */
export function neverConnected(error: unknown): boolean {
  return error instanceof Error && notConnected.has(error);
}

/**
 * Kept-alive connections to one origin, at most `connections` of them. What ends a connection before it stands, a refusal, a
 * certificate that is not believed or an address that may not be connected to, is known to `neverConnected`.
 */
export function openPool(origin: string, { connections, timeoutMs, tls, refuse, lookup }: Connecting): Pool {
  const connect = buildConnector({
    timeout: timeoutMs,
    ...tls,
    // Whatever NODE_TLS_REJECT_UNAUTHORIZED says: money goes to nobody unknown.
    rejectUnauthorized: true,
    ...(lookup === undefined ? {} : { lookup }),
  });
  return new Pool(origin, {
    connections,
    pipelining: 1,
    connect(options, callback) {
      const refusal = refuse?.(options.hostname) ?? null;
      if (refusal !== null) return callback(unconnected(refusal), null);
      connect(options, (error, socket) => {
        if (error !== null) return callback(unconnected(error), null);
        const late = refuse?.(socket.remoteAddress ?? '') ?? null;
        if (late === null) return callback(null, socket);
        socket.destroy();
        callback(unconnected(late), null);
      });
    },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    // Below the five seconds after which node's servers close: a send into a closing connection would be an unknown.
    keepAliveTimeout: 4_000,
  });
}

function unconnected(error: Error): Error {
  notConnected.add(error);
  return error;
}
