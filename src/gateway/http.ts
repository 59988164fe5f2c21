import { OnceperError } from '../kernel/error.ts';
import { openPool, type TlsIdentity } from './connections.ts';
import { isBarredLookUp, isDefinite } from './definite.ts';
import { type Call, type Exchange, exchange } from './http-call.ts';
import type { Gateway, GatewayProperties, LookUpAnswer, SendAnswer } from './port.ts';
import { patienceOf } from './retry-after.ts';
import { errorShape, foundShape, pageShape, parseFoundTransfer, parseJson, parseStated } from './transfer.ts';

export interface HttpGatewayOptions {
  /** Base address, for example `https://bank.example`; a path in it is kept. No credentials: those go in `token`. */
  readonly url: string;
  readonly keyWindowMs: number;
  readonly visibilityDelayMs: number;
  /** Bounds one whole exchange. Too short, and slow successes must be looked up; too long, and a dead relay is noticed late. */
  readonly timeoutMs: number;
  readonly connections?: number;
  /** Asked at each call, and sent as `Authorization: Bearer …`; never printed. Null where it can't be had: then nothing is sent. */
  readonly token?: () => string | null;
  /** For https. */
  readonly tls?: TlsIdentity;
}

const TRANSFERS = '/v1/transfers';
const MAX_ANSWER_BYTES = 64 * 1_024;
const MAX_PAGE_BYTES = 16 * 1_024 * 1_024;
const MAX_NUMBER_LENGTH = 255;

/**
 * The counterparty that speaks the HTTP contract (docs/gateway.md), over kept-alive connections, at most `connections` of
 * them. One call is one exchange: undici's pool repeats no request that may have been written.
 * @throws OnceperError `gateway_url` for an address that is not plain http(s).
 */
export function createHttpGateway(options: HttpGatewayOptions): Gateway {
  const base = parseBase(options.url);
  const { timeoutMs, tls } = options;
  const connections = options.connections ?? 32;
  const pool = openPool(base.origin, { connections, timeoutMs, ...(tls === undefined ? {} : { tls }) });
  const path = base.pathname.replace(/\/$/, '') + TRANSFERS;
  const call = async (part: Pick<Call, 'method' | 'path'> & Partial<Call>): Promise<Exchange> => {
    const credentials = credentialsOf(options);
    if (credentials === null) return { kind: 'unsent', code: 'gateway_token' };
    const headers = { ...(part.headers ?? { accept: 'application/json' }), ...credentials };
    return exchange(pool, { timeoutMs, maxBytes: MAX_ANSWER_BYTES, signal: undefined, ...part, headers });
  };
  return {
    properties: propertiesOf(options),
    async send(number, body, signal) {
      const headers = { 'content-type': 'application/json', 'idempotency-key': number };
      return sendAnswer(await call({ method: 'POST', path, headers, body, signal }));
    },
    async lookUp(number, signal) {
      const query = `?reference=${encodeURIComponent(number)}`;
      return lookUpAnswer(number, await call({ method: 'GET', path: path + query, signal }));
    },
    async list(range) {
      const query = new URLSearchParams({ from: range.from, to: range.to, limit: String(range.limit) });
      if (range.after !== undefined) query.set('after', range.after);
      return pageOf(await call({ method: 'GET', path: `${path}?${query.toString()}`, maxBytes: MAX_PAGE_BYTES }));
    },
    close: () => pool.close(),
  };
}

function credentialsOf({ token }: HttpGatewayOptions): Record<string, string> | null {
  if (token === undefined) return {};
  const stated = token();
  return stated === null ? null : { authorization: `Bearer ${stated}` };
}

function propertiesOf(options: HttpGatewayOptions): GatewayProperties {
  const { keyWindowMs, visibilityDelayMs, timeoutMs } = options;
  return { name: 'http', keyWindowMs, visibilityDelayMs, timeoutMs, maxNumberLength: MAX_NUMBER_LENGTH };
}

function parseBase(url: string): URL {
  const base = URL.canParse(url) ? new URL(url) : null;
  const isPlain = base !== null && /^https?:$/.test(base.protocol) && base.search === '' && base.hash === '';
  if (isPlain && base.username === '' && base.password === '') return base;
  throw new OnceperError({
    code: 'gateway_url',
    message: 'the gateway’s address is no plain http or https address without credentials and query',
    remedy: 'write for example https://bank.example, and give a token by ONCEPER_GATEWAY_TOKEN_FILE',
  });
}

function sendAnswer(got: Exchange): SendAnswer {
  if (got.kind === 'unsent') return got;
  if (got.kind === 'broken') return { kind: 'unknown', code: got.code, status: got.status };
  const { status, text } = got;
  if (status >= 200 && status < 300) {
    const transfer = parseFoundTransfer(text);
    return transfer === null
      ? { kind: 'unknown', code: 'malformed_answer', status }
      : { kind: 'accepted', transfer, status };
  }
  if (status === 409) return { kind: 'in_flight', status };
  if (status === 422) return { kind: 'key_reused', status };
  if (status === 429) return { kind: 'busy', retryAfterMs: patienceOf(got.headers), status };
  const code = errorCode(text, status);
  if (isAboutPayee(code, status)) return { kind: 'refused', code, status };
  return { kind: isDefinite(status) ? 'barred' : 'unknown', code, status };
}

/** What the contract names as final for the payee. Whatever else is refused says nothing of the payee. */
const FINAL_FOR_PAYEE: ReadonlySet<string> = new Set([
  'account_closed',
  'account_blocked',
  'account_not_found',
  'invalid_destination',
  'currency_not_accepted',
  'payee_refused',
]);

/** These statuses speak of whoever asks, whatever code is written beside them. */
const OF_THE_CALLER: ReadonlySet<number> = new Set([401, 402, 403, 407, 451]);

function isAboutPayee(code: string, status: number): boolean {
  return FINAL_FOR_PAYEE.has(code) && isDefinite(status) && !OF_THE_CALLER.has(status);
}

function lookUpAnswer(number: string, got: Exchange): LookUpAnswer {
  if (got.kind === 'unsent') return { kind: 'unknown', code: got.code, status: null };
  if (got.kind === 'broken') return { kind: 'unknown', code: got.code, status: got.status };
  const { status, text } = got;
  if (status !== 200)
    return { kind: isBarredLookUp(status) ? 'barred' : 'unknown', code: errorCode(text, status), status };
  const page = parseStated(text, foundShape);
  if (page === null) return { kind: 'unknown', code: 'malformed_answer', status };
  // A server that ignores the question shows other people's transfers, and the absence of ours among them proves nothing.
  if (page.data.some((transfer) => transfer.reference !== number)) {
    return { kind: 'unknown', code: 'answer_off_topic', status };
  }
  return page.data.length === 0 ? { kind: 'not_found', status } : { kind: 'found', transfers: page.data, status };
}

function pageOf(got: Exchange): Awaited<ReturnType<Gateway['list']>> {
  if (got.kind !== 'answered') throw listFault('gateway_unreachable', got.code);
  if (got.status !== 200) throw listFault('gateway_answer', errorCode(got.text, got.status));
  const page = parseStated(got.text, pageShape);
  if (page === null) throw listFault('gateway_answer', 'malformed_answer');
  return { transfers: page.data, hasMore: page.has_more };
}

function errorCode(text: string, status: number): string {
  return parseJson(text, errorShape)?.error.code ?? `http_${status}`;
}

function listFault(code: string, reason: string): OnceperError {
  return new OnceperError({
    code,
    message: `the counterparty gave no list of transfers (${reason})`,
    remedy: 'ask again when it answers; nothing was changed',
  });
}
