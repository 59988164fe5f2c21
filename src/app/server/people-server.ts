import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Command } from 'commander';
import { OnceperError } from '../../kernel/error.ts';
import type { Log } from '../../observability/log.ts';
import { clockOf, type Database } from '../../store/database.ts';
import type { Act } from '../command.ts';
import type { Config } from '../config.ts';
import type { Io } from '../io.ts';
import { answerRequest } from './answer-request.ts';
import { fault, refuse, send } from './outcome.ts';
import { createRefusals } from './refusals.ts';
import { routeOf } from './route.ts';

/** What the server works with. */
export interface Serving {
  /** The server's own outside: its environment, without anybody's token. */
  readonly io: Io;
  readonly config: Config;
  /** The program, with all its commands. */
  readonly createProgram: (act: Act) => Command;
  /** For what belongs to the server itself; each command has connections of its own. */
  readonly db: Database;
  readonly log: Log;
}

/** What callers may take of the process; milliseconds. */
export interface ServerLimits {
  readonly connections: number;
  /** Commands under way at once; those beyond are asked to come again. */
  readonly commands: number;
  readonly headersMs: number;
  /** For a body of JSON. */
  readonly bodyMs: number;
  /** For a whole request, the longest file included. */
  readonly requestMs: number;
  readonly checkMs: number;
}

const LIMITS: ServerLimits = {
  connections: 256,
  commands: 32,
  headersMs: 5_000,
  bodyMs: 10_000,
  requestMs: 3_600_000,
  checkMs: 1_000,
};

/** A server that listens. */
export interface PeopleServer {
  readonly url: string;
  /** Takes no more requests, ends waits, lets every command come to its end, at most `graceMs`, and returns. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Serves the commands that people have as `/api/v1/<command>`, each for the person of its own bearer token. @throws OnceperError
 * `port_taken`.
 */
export async function startPeopleServer(
  serving: Serving,
  options: {
    readonly listen: { readonly host: string; readonly port: number };
    readonly tls: { readonly cert: string; readonly key: string } | null;
    readonly limits?: Partial<ServerLimits>;
  },
): Promise<PeopleServer> {
  const limits = { ...LIMITS, ...options.limits };
  const server = boundedServer(options.tls, limits);
  const stopping = new AbortController();
  const underWay = new Set<Promise<void>>();
  const parts = {
    ...serving,
    limits,
    stopping: stopping.signal,
    audit: createRefusals(serving.db, serving.config.release),
  };
  const take = (request: IncomingMessage, response: ServerResponse) => {
    const handled = handle(parts, request, response, underWay.size >= limits.commands).catch((error: unknown) => {
      serving.log({ event: 'server_fault', message: error instanceof Error ? error.message : String(error) });
      response.destroy();
    });
    const done = handled.finally(() => underWay.delete(done));
    underWay.add(done);
  };
  server.on('request', take);
  // A long file is refused before it is sent.
  server.on('checkContinue', take);
  await listen(server, options.listen);
  const { host, port } = options.listen;
  const address = server.address();
  const taken = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `${options.tls === null ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${taken}`,
    async stop(graceMs) {
      const closed = new Promise((resolve) => server.close(resolve));
      stopping.abort();
      server.closeIdleConnections();
      const late = setTimeout(() => server.closeAllConnections(), graceMs);
      while (underWay.size > 0) await Promise.all(underWay);
      clearTimeout(late);
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A request and what answers it. */
export type Handling = Serving & {
  readonly limits: ServerLimits;
  readonly stopping: AbortSignal;
  readonly audit: ReturnType<typeof createRefusals>;
};

async function handle(
  parts: Handling,
  request: IncomingMessage,
  response: ServerResponse,
  isFull: boolean,
): Promise<void> {
  response.setHeader('cache-control', 'no-store');
  response.setHeader('x-content-type-options', 'nosniff');
  if (request.headers.origin !== undefined) {
    return refuse(response, fault('origin_refused', 'a page of a browser may not ask', 'ask from the command line'));
  }
  if (request.method === 'GET' && (await answerProbe(parts, request, response))) return;
  const route = routeOf(request.url ?? '');
  if (route === null) {
    return refuse(
      response,
      fault('unknown_route', 'the server has no such command', '/api/v1/ and the words of a command (docs/server.md)'),
    );
  }
  if (isFull) {
    const { commands } = parts.limits;
    return refuse(response, fault('server_busy', `${commands} commands are under way`, 'ask again in a second'));
  }
  await answerRequest(parts, route, request, response);
}

/** What whoever watches the process asks, without a token; false where it asks something else. */
async function answerProbe(
  { db, config }: Handling,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> {
  switch (request.url ?? '') {
    case '/livez':
      send(response, 200, { ok: true });
      return true;
    case '/version':
      send(response, 200, { release: config.release });
      return true;
    case '/readyz':
      try {
        await clockOf(db);
        send(response, 200, { ok: true });
      } catch (error) {
        const code = error instanceof OnceperError ? error.code : 'unexpected';
        send(response, 503, { ok: false, code });
      }
      return true;
    default:
      return false;
  }
}

function boundedServer(tls: { readonly cert: string; readonly key: string } | null, limits: ServerLimits): Server {
  const bounds = {
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.checkMs,
    maxHeaderSize: 16_384,
  };
  const server =
    tls === null ? createServer(bounds) : createTlsServer({ ...bounds, ...tls, handshakeTimeout: limits.headersMs });
  server.maxConnections = limits.connections;
  return server;
}

function listen(server: Server, { host, port }: { readonly host: string; readonly port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (cause: unknown) =>
      reject(
        new OnceperError({
          code: 'port_taken',
          message: `onceper server can't listen on ${host}:${port}`,
          remedy: 'end what listens there, or give another --listen',
          at: `${host}:${port}`,
          cause,
        }),
      );
    server.once('error', failed);
    server.listen(port, host, () => {
      server.off('error', failed);
      resolve();
    });
  });
}
