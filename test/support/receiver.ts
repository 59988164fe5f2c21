import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { afterEach } from 'vitest';

/** A message as it came: whether the library of Standard Webhooks takes it for genuine, and its bytes. */
interface Received {
  readonly id: string;
  readonly timestamp: number;
  readonly contentType: string;
  readonly isGenuine: boolean;
  readonly body: string;
}

/** What a receiver does with a message after reading it whole: answers, cuts the connection, or never answers. */
export type Treatment =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  | 'drop'
  | 'hang';

/** A receiver of webhooks as another team would write it, with a memory of all that came. */
export interface TestReceiver {
  readonly url: string;
  readonly received: readonly Received[];
  /** Treats every later message so. */
  treat(treatment: (message: Received, nth: number) => Treatment): void;
  /** Closes the port, and every connection. */
  stop(): Promise<void>;
  /** Opens the same port again. */
  start(): Promise<void>;
}

export const TEST_SECRET = `whsec_${Buffer.from('a secret that is long enough for it').toString('base64')}`;

/** Receivers of one test file, which are stopped after each test. */
export function useTestReceivers(): (secret?: string) => Promise<TestReceiver> {
  const open: TestReceiver[] = [];
  afterEach(async () => {
    for (const receiver of open.splice(0)) await receiver.stop();
  });
  return async (secret = TEST_SECRET) => {
    const receiver = await startReceiver(secret);
    open.push(receiver);
    return receiver;
  };
}

async function startReceiver(secret: string): Promise<TestReceiver> {
  const received: Received[] = [];
  let treatment: (message: Received, nth: number) => Treatment = () => ({ status: 204 });
  const server: Server = createServer((request, response) => {
    void readMessage(request, new Webhook(secret)).then((message) => {
      received.push(message);
      const treated = message.isGenuine ? treatment(message, received.length) : { status: 401 };
      if (treated === 'drop') response.destroy();
      else if (treated !== 'hang') response.writeHead(treated.status, treated.headers).end(treated.body);
    });
  });
  let port = 0;
  const receiver = {
    get url() {
      return `http://127.0.0.1:${port}/hooks?for=onceper`;
    },
    received,
    treat: (given: typeof treatment) => void (treatment = given),
    async stop() {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
    async start() {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
      port = (server.address() as AddressInfo).port;
    },
  };
  await receiver.start();
  return receiver;
}

async function readMessage(request: IncomingMessage, webhook: Webhook): Promise<Received> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const bytes = Buffer.concat(parts);
  const header = (name: string) => String(request.headers[name] ?? '');
  return {
    id: header('webhook-id'),
    timestamp: Number(header('webhook-timestamp')),
    contentType: header('content-type'),
    isGenuine: request.method === 'POST' && request.url === '/hooks?for=onceper' && isGenuine(webhook, bytes, request),
    body: bytes.toString('utf8'),
  };
}

/** The library's own check, over the bytes as they came. */
function isGenuine(webhook: Webhook, bytes: Buffer, { headers }: IncomingMessage): boolean {
  try {
    webhook.verify(bytes, headers as Record<string, string>);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}
