import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { WebhookSigner } from '../../gateway/webhook-signature.ts';
import { OnceperError } from '../../kernel/error.ts';
import { storeWebhook } from '../../store/webhooks.ts';
import { applyDueWebhooks, applyWebhook, readMessage, type WebhookEvent, type WebhookServices } from './apply.ts';
import { bodyOf } from './body.ts';

export interface WebhookServerOptions {
  /** 0 takes a free port. */
  readonly port: number;
  readonly host?: string;
  readonly signer: WebhookSigner;
  readonly onEvent?: (event: WebhookEvent | WebhookRefused) => void;
  readonly limits?: Partial<WebhookLimits>;
}

/** What strangers may take of a process that faces the network; milliseconds. */
interface WebhookLimits {
  /** Connections at once. Each may hold 256 KiB of a body, so all of them 64 MiB; those beyond are closed unheard. */
  readonly connections: number;
  /** A connection that has not sent the headers of a request in this time is closed, also one that has sent nothing. */
  readonly headersMs: number;
  /** A sender that does not finish its request in this time is cut off. */
  readonly requestMs: number;
  readonly checkMs: number;
}

const LIMITS: WebhookLimits = { connections: 256, headersMs: 5_000, requestMs: 10_000, checkMs: 1_000 };

/** A message that was not stored, so its sender is told no. */
export interface WebhookRefused {
  readonly kind: 'refused';
  readonly status: number;
  readonly why: string;
}

/** An endpoint that listens. */
export interface WebhookServer {
  readonly url: string;
  readonly port: number;
  /** Resolves when everything received so far has been tried. */
  settled(): Promise<void>;
  /** Takes no more messages, ends those in hand and returns; what is stored and not applied waits for the next process. */
  stop(): Promise<void>;
}

const SWEEP = { everyMs: 1_000, limit: 100 };

/**
 * Receives a counterparty's webhooks at `POST /webhooks`: a genuine and fresh one is stored under its id, answered 204 once
 * it is on the disk, and applied after that, here or, where this process dies, by the sweep of the next one. One that was
 * received before is answered 204 and changes nothing. A forged or stale one is answered 401, one that can't be stored 503,
 * so that its sender tries again. Whatever is sent, and however slowly, takes bounded memory and connections.
 * @throws OnceperError `port_taken`.
 */
export async function startWebhookServer(
  services: WebhookServices,
  options: WebhookServerOptions,
): Promise<WebhookServer> {
  const emit = options.onEvent ?? (() => undefined);
  const applying = new Set<Promise<void>>();
  const track = (work: Promise<void>) => {
    const done = work.finally(() => applying.delete(done));
    applying.add(done);
  };
  const server = boundedServer({ ...LIMITS, ...options.limits });
  let dropped = 0;
  server.on('drop', () => (dropped += 1));
  server.on('request', (request, response) => {
    track(
      receive(services, options.signer, request).then(async (answer) => {
        respond(response, answer);
        if (answer.kind === 'refused') emit(answer);
        else if (answer.isNew) await applyWebhook(services, answer.id, emit);
      }),
    );
  });
  await listen(server, options.port, options.host ?? '127.0.0.1');
  let sweep: Promise<unknown> = applyDueWebhooks(services, SWEEP.limit, emit);
  let isSweeping = true;
  const swept = () => void (isSweeping = false);
  void sweep.then(swept);
  const timer = setInterval(() => {
    if (dropped > 0) emit(refused(503, `${dropped} connections too many were closed unheard`));
    dropped = 0;
    if (isSweeping) return;
    isSweeping = true;
    sweep = applyDueWebhooks(services, SWEEP.limit, emit);
    void sweep.then(swept);
  }, SWEEP.everyMs);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : options.port;
  const settled = async () => {
    while (applying.size > 0) await Promise.all(applying);
    await sweep;
  };
  return {
    url: `http://${options.host ?? '127.0.0.1'}:${port}/webhooks`,
    port,
    settled,
    async stop() {
      clearInterval(timer);
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      await settled();
      server.closeAllConnections();
      await closed;
    },
  };
}

function boundedServer(limits: WebhookLimits): Server {
  const server = createServer({
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.checkMs,
  });
  server.maxConnections = limits.connections;
  return server;
}

type Answer =
  | { readonly kind: 'stored'; readonly id: string; readonly isNew: boolean; readonly status: 204 }
  | WebhookRefused;

async function receive(services: WebhookServices, signer: WebhookSigner, request: IncomingMessage): Promise<Answer> {
  if (request.method !== 'POST' || request.url !== '/webhooks') return refused(404, 'no such route');
  const body = await bodyOf(request);
  if (body === null) return refused(413, 'the body is too long, or was cut');
  const verified = signer.verify(request.headers, body);
  if (verified.kind === 'refused') return refused(401, verified.why);
  const message = readMessage(verified.text);
  if (message === null) return refused(400, 'not a JSON object with a type and data in plain texts');
  const { id, text } = verified;
  try {
    return { kind: 'stored', id, isNew: await storeWebhook(services.db, { id, ...message, body: text }), status: 204 };
  } catch (error) {
    return refused(503, error instanceof OnceperError ? error.code : 'not stored');
  }
}

/** A forger learns nothing from the answer; why it was refused stands in the log. */
function respond(response: ServerResponse, { status }: Answer): void {
  response.writeHead(status, { 'content-length': 0, ...(status === 413 ? { connection: 'close' } : {}) });
  response.end();
}

function refused(status: number, why: string): WebhookRefused {
  return { kind: 'refused', status, why };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (cause: unknown) => {
      reject(
        new OnceperError({
          code: 'port_taken',
          message: `webhooks can’t be received on port ${port}`,
          remedy: 'end what listens there, or give another --port',
          at: String(port),
          cause,
        }),
      );
    };
    server.once('error', failed);
    server.listen(port, host, () => {
      server.off('error', failed);
      resolve();
    });
  });
}
