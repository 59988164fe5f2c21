import { afterEach, beforeEach } from 'vitest';
import { createWebhookSigner } from '../../src/gateway/webhook-signature.ts';
import type { WebhookEvent, WebhookServices } from '../../src/relay/webhooks/apply.ts';
import {
  startWebhookServer,
  type WebhookRefused,
  type WebhookServer,
  type WebhookServerOptions,
} from '../../src/relay/webhooks/server.ts';
import { forced } from '../support/forced.ts';
import { insertEffect, type TestLedger, testRegistry } from '../support/ledger-rows.ts';

export const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const webhookSigner = createWebhookSigner(WEBHOOK_SECRET);

/** An endpoint for webhooks of one test file: each test gets a key of its own, and a server that stops after it. */
export interface TestEndpoint {
  readonly key: string;
  readonly server: WebhookServer;
  readonly events: readonly (WebhookEvent | WebhookRefused)[];
  readonly nextId: () => string;
  /** Starts another server, on the same ledger unless told otherwise. It is the one that is posted to from then on. */
  start(services?: Partial<WebhookServices>, limits?: WebhookServerOptions['limits']): Promise<WebhookServer>;
  /** Posts a message as the counterparty does; returns the answer's status. */
  readonly post: (body: string, id?: string, at?: Date, headers?: Readonly<Record<string, string>>) => Promise<number>;
  /** `type state code` of each message that was stored in this test, once all have been tried. */
  states(): Promise<string[]>;
}

export function useTestEndpoint(ledger: Pick<TestLedger, 'db' | 'freshKey'>): TestEndpoint {
  const servers: WebhookServer[] = [];
  let events: (WebhookEvent | WebhookRefused)[] = [];
  let key = '';
  let messages = 0;
  let server: WebhookServer;

  beforeEach(async () => {
    await ledger.db.query(`update onceper.webhook set state = 'stale' where state = 'attention'`);
    await ledger.db.query('truncate public.fate');
    key = await ledger.freshKey();
    events = [];
    await endpoint.start();
  });
  afterEach(async () => {
    for (const started of servers.splice(0)) await started.stop();
  });

  const endpoint: TestEndpoint = {
    get key() {
      return key;
    },
    get server() {
      return server;
    },
    get events() {
      return events;
    },
    nextId: () => `msg_${key}_${(messages += 1)}`,
    async start(services = {}, limits = {}) {
      const onEvent = (event: WebhookEvent | WebhookRefused) => events.push(event);
      const options = { port: 0, signer: webhookSigner, onEvent, limits };
      server = await startWebhookServer({ db: ledger.db, jobs: testRegistry(), ...services }, options);
      servers.push(server);
      return server;
    },
    post: async (body, id = endpoint.nextId(), at = new Date(), headers = {}) => {
      const signed = { ...webhookSigner.sign(id, at, body), 'content-type': 'application/json', ...headers };
      return (await fetch(server.url, { method: 'POST', body, headers: signed })).status;
    },
    async states() {
      await server.settled();
      const { rows } = await ledger.db.query<{ line: string }>(
        `select concat_ws(' ', type, state, code) as line from onceper.webhook where id like $1 order by received_at`,
        [`msg_${key}_%`],
      );
      return rows.map((row) => row.line);
    },
  };
  return endpoint;
}

/** A message about a transfer of 12.50 GBP to m-1, as a counterparty writes it, with what a test changes of it. */
export function messageOf(number: string, status: string, changes: object = {}): string {
  const stated = { amount: '1250', currency: 'GBP', destination: 'm-1', reference: number };
  return JSON.stringify({ type: `transfer.${status}`, data: { id: 'tr_1', status, ...stated, ...changes } });
}

/** An effect that was sent and whose fate is `state`, as a relay has left it. */
export async function sentEffect(
  ledger: Pick<TestLedger, 'db'>,
  key: string,
  state = 'pending_external',
): Promise<string> {
  const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
  await forced(
    ledger.db,
    `update onceper.outbox
        set state = $2, attempts = 1, fence = 2, first_sent_at = clock_timestamp(), last_sent_at = clock_timestamp(),
            counterparty_id = case when $2 in ('pending_external', 'succeeded') then 'tr_1' end,
            due_at = clock_timestamp() + interval '1 hour'
      where number = $1`,
    [number, state],
  );
  return number;
}
