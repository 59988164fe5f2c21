import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

/** A message as a receiver heard it; `status` is what it answered, null where it never did. */
interface Heard {
  readonly id: string;
  readonly isGenuine: boolean;
  readonly body: string;
  readonly status: number | null;
}

/** Another team's system: it verifies with the library of Standard Webhooks, and remembers all that came. */
export interface DrillReceiver {
  readonly url: string;
  readonly secret: string;
  readonly heard: readonly Heard[];
  stop(): Promise<void>;
}

/** Opens a receiver whose answers `answer` decides, by the id of a message and how often that came before; null never comes. */
export async function openReceiver(answer: (id: string, before: number) => number | null): Promise<DrillReceiver> {
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const webhook = new Webhook(secret);
  const heard: Heard[] = [];
  const server = createServer((request, response) => {
    void bytesOf(request).then((body) => {
      const id = String(request.headers['webhook-id']);
      const status = answer(id, heard.filter((message) => message.id === id).length);
      heard.push({ id, isGenuine: isGenuine(webhook, request, body), body: body.toString('utf8'), status });
      if (status !== null) response.writeHead(status).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`,
    secret,
    heard,
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

function isGenuine(webhook: Webhook, { headers }: IncomingMessage, body: Buffer): boolean {
  try {
    webhook.verify(body, headers as Record<string, string>, { jsonParse: false });
    return true;
  } catch {
    return false;
  }
}
