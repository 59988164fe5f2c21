import { EventEmitter } from 'node:events';
import type { Pool } from 'undici';
import { codeOf } from '../kernel/error.ts';
import { neverConnected } from './connections.ts';

/** One HTTP exchange that came to its end, or the code of what ended it; `unsent` when no connection came about. */
export type Exchange =
  | { readonly kind: 'answered'; readonly status: number; readonly text: string; readonly headers: AnswerHeaders }
  | { readonly kind: 'broken'; readonly code: string; readonly status: number | null }
  | { readonly kind: 'unsent'; readonly code: string };

type AnswerHeaders = Record<string, string | string[] | undefined>;

export interface Call {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * One exchange over the pool, bounded as a whole by `timeoutMs`: queueing, connecting, answer and body together. undici's
 * own time-outs bound the silences between bytes only, and a counterparty that drips would hold a lease for ever. Never
 * throws, never repeats, and reads `maxBytes` of a body at most.
 */
export async function exchange(pool: Pool, call: Call): Promise<Exchange> {
  if (call.signal?.aborted === true) return { kind: 'unsent', code: 'aborted' };
  // An emitter and no AbortController: one each call costs a twentieth of the throughput, and undici takes either.
  const cut = new EventEmitter();
  let ended: 'timeout' | 'aborted' | null = null;
  const end = (reason: 'timeout' | 'aborted') => {
    ended = reason;
    cut.emit('abort');
  };
  const timer = setTimeout(() => end('timeout'), call.timeoutMs);
  const unfollow = follow(call.signal, () => end('aborted'));
  let status: number | null = null;
  try {
    const answer = await pool.request({
      method: call.method,
      path: call.path,
      headers: call.headers,
      body: call.body ?? null,
      signal: cut,
    });
    status = answer.statusCode;
    const text = await boundedText(answer.body, answer.headers['content-length'], call.maxBytes);
    if (text === null) return { kind: 'broken', code: 'answer_too_long', status };
    return { kind: 'answered', status, text, headers: answer.headers };
  } catch (error) {
    if (ended !== null) return { kind: 'broken', code: ended, status };
    return status === null && neverConnected(error)
      ? { kind: 'unsent', code: transportCode(error) }
      : { kind: 'broken', code: transportCode(error), status };
  } finally {
    clearTimeout(timer);
    unfollow();
  }
}

const followers = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls back when the signal aborts, until the returned function is called. All calls of a signal share one listener on it. */
function follow(signal: AbortSignal | undefined, onAbort: () => void): () => void {
  if (signal === undefined) return () => undefined;
  let calls = followers.get(signal);
  if (calls === undefined) {
    const fresh = new Set<() => void>();
    followers.set(signal, fresh);
    signal.addEventListener('abort', () => [...fresh].forEach((abort) => abort()), { once: true });
    calls = fresh;
  }
  const own = calls;
  own.add(onAbort);
  return () => void own.delete(onAbort);
}

async function boundedText(
  body: AsyncIterable<Uint8Array> & { text(): Promise<string>; dump(): Promise<void> },
  length: string | string[] | undefined,
  maxBytes: number,
): Promise<string | null> {
  // A stated length is enforced by the parser, so the quick way reads no more than it says.
  if (typeof length === 'string' && Number(length) <= maxBytes) return body.text();
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body) {
    bytes += part.length;
    if (bytes > maxBytes) return null;
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

/** A stable lower-case code; never the message, which can hold an address with its credentials. */
function transportCode(error: unknown): string {
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return (codeOf(error) ?? codeOf(inner) ?? 'transport').toLowerCase();
}
