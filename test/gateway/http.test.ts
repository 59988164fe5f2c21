import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { freePort } from '../../src/embedded/ports.ts';
import { createHttpGateway, type HttpGatewayOptions } from '../../src/gateway/http.ts';
import type { Gateway } from '../../src/gateway/port.ts';

const number = 'settlement:2026-09:m-1:GBP:payout';
const body = `{"amount":"1250","currency":"GBP","destination":"m-1","reference":"${number}"}`;
const transfer = { id: 'tr_1', status: 'succeeded', ...(JSON.parse(body) as object) };

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

let server: Server;
let gateway: Gateway;
let seen: Seen[];
let answerWith: (response: ServerResponse) => void;

beforeEach(async () => {
  seen = [];
  server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      seen.push({ method, url, headers, body: Buffer.concat(parts).toString() });
      answerWith(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  gateway = gatewayTo((server.address() as AddressInfo).port);
});

afterEach(async () => {
  await gateway.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function gatewayTo(port: number, options: Partial<HttpGatewayOptions> = {}): Gateway {
  const promises = { keyWindowMs: 86_400_000, visibilityDelayMs: 30_000, timeoutMs: 400 };
  return createHttpGateway({ url: `http://127.0.0.1:${port}/bank/`, ...promises, ...options });
}

const says = (status: number, json: unknown, headers: Record<string, string> = {}) => {
  answerWith = (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof json === 'string' ? json : JSON.stringify(json));
  };
};
const error = (code: string) => ({ error: { code, message: 'because' } });

describe('a send', () => {
  test('carries the number as its key and the frozen bytes as they are', async () => {
    says(201, transfer);
    const spaced = ` ${body.replace(':', ' :\t')}\n`;
    expect(await gateway.send(number, spaced)).toEqual({ kind: 'accepted', transfer, status: 201 });
    expect(seen).toMatchObject([{ method: 'POST', url: '/bank/v1/transfers', body: spaced }]);
    expect(seen[0]?.headers).toMatchObject({ 'idempotency-key': number, 'content-type': 'application/json' });
  });

  test.each([
    ['201 with a transfer', 201, transfer, 'accepted', undefined],
    ['202 with a pending transfer', 202, { ...transfer, status: 'pending' }, 'accepted', undefined],
    ['409 as in flight', 409, error('in_flight'), 'in_flight', undefined],
    ['422 as a reused key', 422, error('key_reused'), 'key_reused', undefined],
    ['400 as refused, with its code', 400, error('account_closed'), 'refused', 'account_closed'],
    ['404 with a code about the payee as refused', 404, error('account_not_found'), 'refused', 'account_not_found'],
    ['402 as about us, whatever code it has', 402, error('account_closed'), 'barred', 'account_closed'],
    ['402 as about us, with its code', 402, error('balance_insufficient'), 'barred', 'balance_insufficient'],
    ['a code that the contract does not name as about us', 400, error('limit_reached'), 'barred', 'limit_reached'],
    ['401 as about us', 401, '', 'barred', 'http_401'],
    ['403 as about us', 403, '', 'barred', 'http_403'],
    ['404 without a code as about us', 404, '<html>', 'barred', 'http_404'],
    ['410 as about us', 410, '', 'barred', 'http_410'],
    ['451 as about us', 451, '', 'barred', 'http_451'],
    ['a code that is free text as about us, without it', 400, error('Mr Smith, 1 High Street'), 'barred', 'http_400'],
    ['a code with a NUL as about us, without it', 400, error('no\0'), 'barred', 'http_400'],
    ['a code of 60,000 characters as about us, without it', 400, error('x'.repeat(60_000)), 'barred', 'http_400'],
    ['408 as unknown', 408, error('too_slow'), 'unknown', 'too_slow'],
    ['500 as unknown', 500, error('internal'), 'unknown', 'internal'],
    ['302 as unknown', 302, '', 'unknown', 'http_302'],
    ['201 with cut JSON as unknown', 201, JSON.stringify(transfer).slice(0, 30), 'unknown', 'malformed_answer'],
    ['201 without an id as unknown', 201, { ...transfer, id: undefined }, 'unknown', 'malformed_answer'],
    ['201 with a numeric amount as unknown', 201, { ...transfer, amount: 1250 }, 'unknown', 'malformed_answer'],
  ])('reads %s', async (_sentence, status, json, kind, code) => {
    says(status, json);
    const answer = await gateway.send(number, body);
    expect(answer).toMatchObject(code === undefined ? { kind, status } : { kind, status, code });
  });

  test('reads 429 as busy for as long as Retry-After says', async () => {
    says(429, error('busy'), { 'retry-after': '3' });
    expect(await gateway.send(number, body)).toEqual({ kind: 'busy', retryAfterMs: 3_000, status: 429 });
  });

  test('is one exchange: a reset connection is unknown and nothing is sent again', async () => {
    answerWith = (response) => response.socket?.resetAndDestroy();
    expect(await gateway.send(number, body)).toMatchObject({ kind: 'unknown', status: null });
    expect(seen).toHaveLength(1);
  });

  test('is unknown when the answer stops half-way', async () => {
    answerWith = (response) => {
      response.writeHead(201, { 'content-length': 500 });
      response.write('{"id":', () => response.socket?.destroy());
    };
    expect(await gateway.send(number, body)).toMatchObject({ kind: 'unknown', status: 201 });
  });

  test('ends with its time-out even when the counterparty drips bytes', async () => {
    let drip: NodeJS.Timeout | undefined;
    answerWith = (response) => {
      response.writeHead(201);
      drip = setInterval(() => response.write(' '), 50);
    };
    expect(await gateway.send(number, body)).toEqual({ kind: 'unknown', code: 'timeout', status: 201 });
    clearInterval(drip);
  });

  test('is unknown when the answer is longer than any transfer', async () => {
    answerWith = (response) => response.end('x'.repeat(70_000));
    expect(await gateway.send(number, body)).toMatchObject({ kind: 'unknown', code: 'answer_too_long' });
  });

  test('is unsent when nobody listens, and only then', async () => {
    const away = gatewayTo(await freePort());
    expect(await away.send(number, body)).toEqual({ kind: 'unsent', code: 'econnrefused' });
    await away.close();
  });

  test('is cut by its caller’s signal', async () => {
    const stop = new AbortController();
    answerWith = () => stop.abort();
    expect(await gateway.send(number, body, stop.signal)).toEqual({ kind: 'unknown', code: 'aborted', status: null });
  });
});

describe('a look-up', () => {
  test('asks by reference and finds what is there', async () => {
    says(200, { data: [transfer] });
    expect(await gateway.lookUp(number)).toEqual({ kind: 'found', transfers: [transfer], status: 200 });
    expect(seen).toMatchObject([{ method: 'GET', url: `/bank/v1/transfers?reference=${encodeURIComponent(number)}` }]);
  });

  test.each([
    ['nothing', 200, { data: [] }, { kind: 'not_found' }],
    ['500', 500, error('internal'), { kind: 'unknown', code: 'internal' }],
    ['404, which is about us', 404, error('not_found'), { kind: 'barred', code: 'not_found' }],
    ['403, which is about us', 403, '', { kind: 'barred', code: 'http_403' }],
    ['429', 429, error('busy'), { kind: 'unknown', code: 'busy' }],
    ['cut JSON', 200, '{"data":[', { kind: 'unknown', code: 'malformed_answer' }],
    [
      'other people’s transfers',
      200,
      { data: [{ ...transfer, reference: 'x' }] },
      { kind: 'unknown', code: 'answer_off_topic' },
    ],
  ])('reads %s', async (_sentence, status, json, expected) => {
    says(status, json);
    expect(await gateway.lookUp(number)).toMatchObject(expected);
  });
});

describe('a list', () => {
  const range = { from: '2026-09-01T00:00:00Z', to: '2026-10-01T00:00:00Z', limit: 2 };

  test('pages with after and limit', async () => {
    says(200, { data: [transfer], has_more: true });
    expect(await gateway.list({ ...range, after: 'tr_0' })).toEqual({ transfers: [transfer], hasMore: true });
    const query = new URL(seen[0]?.url ?? '', 'http://bank').searchParams;
    expect(Object.fromEntries(query)).toEqual({ ...range, limit: '2', after: 'tr_0' });
  });

  test('throws when there is no list, because a missing page is not an empty one', async () => {
    says(200, { data: [transfer] });
    await expect(gateway.list(range)).rejects.toMatchObject({ code: 'gateway_answer' });
    says(200, { data: [{ ...transfer, id: 'tr_\0' }], has_more: false });
    await expect(gateway.list(range)).rejects.toMatchObject({ code: 'gateway_answer' });
    answerWith = (response) => response.socket?.resetAndDestroy();
    await expect(gateway.list(range)).rejects.toMatchObject({ code: 'gateway_unreachable' });
  });

  test('states a transfer that can’t be read, ours by its reference and a stranger’s by its id, instead of stopping', async () => {
    const ours = { ...transfer, id: 'tr_2', amount: 1250 };
    const stranger = { ...transfer, id: 'tr_3', reference: 'for Jane,\nwith thanks' };
    says(200, { data: [transfer, ours, stranger], has_more: false });
    const none = { status: 'unreadable', amount: '0', currency: 'XXX' };
    expect((await gateway.list(range)).transfers).toEqual([
      transfer,
      { ...none, id: 'tr_2', destination: 'tr_2', reference: number },
      { ...none, id: 'tr_3', destination: 'tr_3', reference: 'tr_3' },
    ]);
  });

  test('keeps the digits of ids that are numbers, also as the place where the next page begins', async () => {
    says(200, JSON.stringify({ data: [transfer], has_more: true }).replace('"tr_1"', '9007199254740993'));
    const { transfers } = await gateway.list(range);
    await gateway.list({ ...range, after: transfers[0]?.id ?? '' }).catch(() => undefined);
    expect(new URL(seen[1]?.url ?? '', 'http://bank').searchParams.get('after')).toBe('9007199254740993');
  });
});

test('an address with credentials is refused without repeating them; a token is sent and nothing else', async () => {
  const options = { keyWindowMs: 1, visibilityDelayMs: 0, timeoutMs: 1 };
  for (const url of ['https://me:secret@bank.example', 'ftp://bank.example', 'bank']) {
    expect(() => createHttpGateway({ ...options, url })).toThrow(expect.objectContaining({ code: 'gateway_url' }));
    expect(() => createHttpGateway({ ...options, url })).not.toThrow(/secret/);
  }
  let token: string | null = 'secret';
  const trusted = gatewayTo((server.address() as AddressInfo).port, { token: () => token });
  says(200, { data: [] });
  await trusted.lookUp(number);
  token = 'newer';
  await trusted.send(number, body);
  expect(seen.map(({ headers }) => headers.authorization)).toEqual(['Bearer secret', 'Bearer newer']);
  token = null;
  expect(await trusted.send(number, body)).toEqual({ kind: 'unsent', code: 'gateway_token' });
  expect(seen).toHaveLength(2);
  await trusted.close();
});
