import { AsyncLocalStorage } from 'node:async_hooks';
import type Stripe from 'stripe';
import { openPool } from '../connections.ts';
import { type Exchange, exchange } from '../http-call.ts';

/** What came of one call of Stripe's package: its value, or what it threw, beside the one exchange that it made. */
export interface Called<T> {
  readonly exchange: Exchange;
  readonly value: T | null;
  readonly thrown: unknown;
}

/** Stripe's package over connections of ours. */
export interface Transport {
  readonly httpClient: Stripe.HttpClient;
  /** Runs one call of the package; a second exchange in it is refused unsent. Never throws. */
  call<T>(run: () => Promise<T>, signal?: AbortSignal): Promise<Called<T>>;
  close(): Promise<void>;
}

interface Running {
  readonly signal: AbortSignal | undefined;
  exchange: Exchange | null;
}

const MAX_ANSWER_BYTES = 16 * 1_024 * 1_024;
const NOT_MADE: Exchange = { kind: 'unsent', code: 'stripe_not_called' };

/** Without a code, so that the package takes it for nothing that it would repeat by itself. */
class Ended extends Error {}

/**
 * The package's own client repeats a request once after a reset connection even with its retries off, and can't be cut by a
 * signal. This one makes one exchange a call, bounded as a whole by `timeoutMs`, and keeps what came of it: whether a byte
 * can have left is read there and not from an exception.
 */
export function createTransport(origin: string, timeoutMs: number, connections: number): Transport {
  const pool = openPool(origin, { connections, timeoutMs });
  const running = new AsyncLocalStorage<Running>();
  const httpClient: Stripe.HttpClient = {
    getClientName: () => 'onceper',
    async makeRequest(_host, _port, path, method, headers, body) {
      const own = running.getStore();
      if (own === undefined || own.exchange !== null) throw new Ended('one call is one exchange');
      own.exchange = await exchange(pool, {
        method: method === 'POST' ? 'POST' : 'GET',
        path,
        headers: plain(headers),
        ...(method === 'POST' ? { body } : {}),
        timeoutMs,
        maxBytes: MAX_ANSWER_BYTES,
        signal: own.signal,
      });
      if (own.exchange.kind !== 'answered') throw new Ended(own.exchange.code);
      const json = objectOf(own.exchange.text);
      // The package would write onto it, fail outside any promise of ours, and never come back.
      if (json === null) throw new Ended('malformed_answer');
      return responseOf(own.exchange, json);
    },
  };
  return {
    httpClient,
    async call(run, signal) {
      const own: Running = { signal, exchange: null };
      try {
        const value = await running.run(own, run);
        return { exchange: own.exchange ?? NOT_MADE, value, thrown: null };
      } catch (thrown) {
        return { exchange: own.exchange ?? NOT_MADE, value: null, thrown };
      }
    },
    close: () => pool.close(),
  };
}

/** undici counts the bytes itself, and takes no header that is a number. */
function plain(headers: Record<string, string | number | string[]>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => name.toLowerCase() !== 'content-length')
      .map(([name, value]) => [name, String(value)]),
  );
}

function objectOf(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

function responseOf(answer: Extract<Exchange, { kind: 'answered' }>, json: object): Stripe.HttpClientResponse {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(answer.headers)) if (value !== undefined) headers[name] = value;
  return {
    getStatusCode: () => answer.status,
    getHeaders: () => headers,
    getRawResponse: () => ({}),
    toStream: () => answer.text,
    toJSON: async () => json,
  };
}
