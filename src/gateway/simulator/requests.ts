import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { parseJson } from '../transfer.ts';
import type { PageQuery } from './bank.ts';
import { parseSettings, shareOf } from './settings.ts';
import type { Counter } from './simulator.ts';
import { type Reply, refusalBody } from './teller.ts';

const MAX_BODY_BYTES = 1_024 * 1_024;
const MAX_PAGE = 1_000;

const settleShape = z.strictObject({
  number: z.string(),
  status: z.enum(['succeeded', 'failed', 'returned', 'pending']),
});

/** Answers one request. A fault in here, such as a journal that can't be written, resets the connection: no answer, no promise. */
export async function handleRequest(
  counter: Counter,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    write(response, await replyTo(counter, request));
  } catch {
    response.socket?.resetAndDestroy();
  }
}

async function replyTo(counter: Counter, request: IncomingMessage): Promise<Reply> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://gateway');
  const route = `${request.method ?? 'GET'} ${pathname}`;
  switch (route) {
    case 'POST /v1/transfers':
      return receive(counter, request);
    case 'GET /v1/transfers':
      if (counter.settings.everything !== null) return barred(counter.settings.everything);
      return searchParams.has('reference') ? lookUp(counter, searchParams) : list(counter, searchParams);
    case 'GET /control/modes':
      return answer(200, counter.settings);
    case 'PUT /control/modes':
      return changeModes(counter, await bodyOf(request));
    case 'POST /control/settle':
      return settle(counter, await bodyOf(request));
    case 'GET /control/counts':
      return answer(200, counter.counts());
    default:
      return refusal(404, 'no_such_route', route);
  }
}

async function receive(counter: Counter, request: IncomingMessage): Promise<Reply> {
  const body = await bodyOf(request);
  const number = request.headers['idempotency-key'];
  if (typeof number !== 'string' || number === '') return refusal(400, 'idempotency_key_missing', 'send one');
  return counter.teller.receive(number, body, counter.settings);
}

function lookUp(counter: Counter, query: URLSearchParams): Reply {
  counter.lookUps += 1;
  const { settings, lookUps } = counter;
  if (shareOf(`${settings.seed}:look-up:${lookUps}`) < settings.lookUpErrors) return refusal(500, 'internal', 'later');
  const reference = query.get('reference') ?? '';
  return answer(200, { data: counter.bank.byReference(reference, Date.now() - settings.lookUpLagMs) });
}

function list(counter: Counter, query: URLSearchParams): Reply {
  const page = pageQuery(query);
  if (page === null) return refusal(400, 'malformed_range', 'from and to are ISO 8601 instants, limit is 1 to 1000');
  const found = counter.bank.page(page);
  if (found === null) return refusal(400, 'unknown_after', 'after is the id of a transfer');
  return answer(200, { data: found.data, has_more: found.hasMore });
}

function pageQuery(query: URLSearchParams): PageQuery | null {
  const fromMs = Date.parse(query.get('from') ?? '');
  const toMs = Date.parse(query.get('to') ?? '');
  const limit = Number(query.get('limit') ?? '100');
  if (Number.isNaN(fromMs) || Number.isNaN(toMs) || !Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE)
    return null;
  return { fromMs, toMs, after: query.get('after'), limit };
}

function changeModes(counter: Counter, body: string): Reply {
  const parsed = parseSettings(parseJson(body, z.unknown()));
  if (parsed.kind === 'wrong') return refusal(400, 'malformed_settings', parsed.why);
  counter.settings = parsed.settings;
  return answer(200, counter.settings);
}

async function settle(counter: Counter, body: string): Promise<Reply> {
  const asked = parseJson(body, settleShape);
  if (asked === null) return refusal(400, 'malformed_settle', 'send {"number","status"}');
  const transfer = await counter.teller.settle(asked.number, asked.status);
  return transfer === null ? refusal(404, 'no_such_transfer', asked.number) : answer(200, transfer);
}

/** By events: the async iterator of a request costs a third of the throughput. */
function bodyOf(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    request.on('data', (part: Buffer) => {
      bytes += part.length;
      if (bytes > MAX_BODY_BYTES) reject(new Error('the body is too long'));
      else parts.push(part);
    });
    request.on('end', () => resolve(Buffer.concat(parts).toString('utf8')));
    request.on('error', reject);
  });
}

function barred({ status, code }: NonNullable<Counter['settings']['everything']>): Reply {
  return answer(status, refusalBody(status, code));
}

function answer(status: number, body: unknown): Reply {
  return { kind: 'answer', status, body };
}

function refusal(status: number, code: string, message: string): Reply {
  return answer(status, { error: { code, message } });
}

function write(response: ServerResponse, reply: Reply): void {
  if (reply.kind === 'reset') {
    response.socket?.resetAndDestroy();
    return;
  }
  const bytes = Buffer.from(JSON.stringify(reply.body));
  response.writeHead(reply.status, {
    ...reply.headers,
    'content-type': 'application/json',
    'content-length': bytes.length,
  });
  if (reply.kind === 'answer') response.end(bytes);
  else response.write(bytes.subarray(0, bytes.length >> 1), () => response.socket?.destroy());
}
