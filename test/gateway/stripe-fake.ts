import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Treatment } from '../../src/gateway/conformance/suite.ts';

/** A transfer as Stripe states it, in the parts that matter. */
interface StripeTransfer {
  readonly id: string;
  readonly object: 'transfer';
  readonly amount: number;
  amount_reversed: number;
  readonly created: number;
  currency: string;
  readonly destination: string;
  readonly metadata: Record<string, string>;
  reversed: boolean;
  readonly transfer_group: string | null;
}

/**
 * A server with Stripe's memory: its idempotency layer saves every answer of a request that began, a 500 and a lack of balance
 * too, says so when it repeats one, and its lists are newest first.
 */
export interface StripeFake {
  readonly url: string;
  readonly transfers: StripeTransfer[];
  readonly posts: { readonly key: string; readonly body: string; readonly authorization: string | undefined }[];
  treat(number: string, treatment: Treatment): void;
  /** False lets every create fail for want of balance, until it is true again. */
  hasBalance: boolean;
  /** Accounts that are closed. */
  readonly closed: Set<string>;
  stop(): Promise<void>;
}

const ERRORS = {
  in_flight: [409, { type: 'idempotency_error', code: 'idempotency_key_in_use' }],
  busy: [429, { type: 'invalid_request_error', code: 'rate_limit' }],
  refused: [400, { type: 'invalid_request_error', code: 'account_closed', message: 'Closed by Mr Smith' }],
  barred: [400, { type: 'invalid_request_error', code: 'balance_insufficient', message: 'Not enough, Mr Smith' }],
} as const;

export async function startStripeFake(): Promise<StripeFake> {
  const transfers: StripeTransfer[] = [];
  const posts: StripeFake['posts'] = [];
  const saved = new Map<string, { readonly body: string; readonly status: number; readonly json: unknown }>();
  const treatments = new Map<string, Treatment>();
  const closed = new Set<string>();

  const make = (form: URLSearchParams): StripeTransfer => {
    const transfer: StripeTransfer = {
      id: `tr_${transfers.length + 1}`,
      object: 'transfer',
      amount: Number(form.get('amount')),
      amount_reversed: 0,
      created: Math.floor(Date.now() / 1_000),
      currency: form.get('currency') ?? '',
      destination: form.get('destination') ?? '',
      metadata: { onceper_destination: form.get('metadata[onceper_destination]') ?? '' },
      reversed: false,
      transfer_group: form.get('transfer_group'),
    };
    transfers.push(transfer);
    return transfer;
  };

  const post = (key: string, body: string, response: ServerResponse) => {
    const before = saved.get(key);
    if (before !== undefined && before.body !== body)
      return say(response, 400, { error: { type: 'idempotency_error' } });
    if (before !== undefined) {
      response.setHeader('idempotent-replayed', 'true');
      return say(response, before.status, before.json);
    }
    const isClosed = closed.has(new URLSearchParams(body).get('destination') ?? '');
    const treatment = treatments.get(key) ?? (isClosed ? 'refused' : fake.hasBalance ? undefined : 'barred');
    treatments.delete(key);
    if (treatment === 'drop_before') return response.socket?.resetAndDestroy();
    if (treatment === 'barred') {
      const [status, error] = ERRORS.barred;
      saved.set(key, { body, status, json: { error } });
      return say(response, status, { error });
    }
    if (treatment === 'in_flight' || treatment === 'busy' || treatment === 'refused') {
      const [status, error] = ERRORS[treatment];
      response.setHeader('retry-after', '2');
      if (treatment === 'refused') saved.set(key, { body, status, json: { error } });
      return say(response, status, { error });
    }
    const failed = treatment === 'error_before' || treatment === 'error_after';
    const transfer = treatment === 'error_before' ? null : make(new URLSearchParams(body));
    const json: unknown = failed ? { error: { type: 'api_error' } } : transfer;
    saved.set(key, { body, status: failed ? 500 : 200, json });
    if (treatment === 'drop_after') return response.socket?.resetAndDestroy();
    if (treatment === 'cut') {
      response.writeHead(200, { 'content-length': 500 });
      return response.write('{"id":"tr', () => response.socket?.destroy());
    }
    return say(response, failed ? 500 : 200, json);
  };

  const server = createServer((request, response) => {
    void (async () => {
      const url = new URL(request.url ?? '', 'http://stripe');
      if (request.method === 'GET') return say(response, 200, listed(transfers, url.searchParams));
      const key = String(request.headers['idempotency-key']);
      const body = await text(request);
      posts.push({ key, body, authorization: request.headers.authorization });
      return post(key, body, response);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const fake: StripeFake = {
    hasBalance: true,
    closed,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    transfers,
    posts,
    treat: (number, treatment) => void treatments.set(number, treatment),
    async stop() {
      const ended = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await ended;
    },
  };
  return fake;
}

function listed(transfers: readonly StripeTransfer[], query: URLSearchParams) {
  const limit = Number(query.get('limit') ?? '10');
  const group = query.get('transfer_group');
  const from = Number(query.get('created[gte]') ?? '0');
  const until = Number(query.get('created[lt]') ?? 'Infinity');
  const newest = transfers
    .filter((each) => group === null || each.transfer_group === group)
    .filter((each) => each.created >= from && each.created < until)
    .toReversed();
  const place = (name: string) => newest.findIndex(({ id }) => id === query.get(name));
  if (query.has('ending_before')) {
    const end = place('ending_before');
    const begin = Math.max(0, end - limit);
    return { object: 'list', url: '/v1/transfers', data: newest.slice(begin, end), has_more: begin > 0 };
  }
  const begin = query.has('starting_after') ? place('starting_after') + 1 : 0;
  const data = newest.slice(begin, begin + limit);
  return { object: 'list', url: '/v1/transfers', data, has_more: begin + limit < newest.length };
}

function say(response: ServerResponse<IncomingMessage>, status: number, json: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(json));
}
