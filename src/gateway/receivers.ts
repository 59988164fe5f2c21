import type { LookupFunction } from 'node:net';
import type { Pool } from 'undici';
import { OnceperError } from '../kernel/error.ts';
import type { NoticeAnswer } from '../kernel/notice.ts';
import { openPool } from './connections.ts';
import { type Exchange, exchange } from './http-call.ts';
import { type Networks, networksWith } from './networks.ts';
import type { Receivers } from './port.ts';
import { patienceOf } from './retry-after.ts';
import { createWebhookSigner, type WebhookSigner } from './webhook-signature.ts';

/** A receiver of webhooks by the name that its destination has, and its address. */
export interface ReceiverAddress {
  readonly name: string;
  readonly url: string;
}

/** A receiver as a relay knows it. */
export interface Receiver extends ReceiverAddress {
  /** `whsec_` and base64. With more than one each message carries a signature of each, so that a receiver can change over. */
  readonly secrets: readonly string[];
}

export interface ReceiverOptions {
  readonly timeoutMs: number;
  /** Internal networks, as address/bits or address, in which receivers may be. Without them receivers are outside. */
  readonly networks?: readonly string[];
  /** The system's by default. */
  readonly resolve?: LookupFunction;
}

/** What a receiver says in its answer is of no interest, and one that never ends must not be read. */
const MAX_ANSWER_BYTES = 16 * 1_024;

/** Sends in flight to one receiver. */
export const RECEIVER_CONNECTIONS = 4;

/**
 * The adapter for destinations of kind webhook: events in the envelope of Standard Webhooks. webhook-id is the number, and
 * every send repeats the same bytes under it; webhook-timestamp is the try's own time, so that a late try is fresh. Redirects
 * are not followed. A receiver lies outside, or in one of the networks that are allowed; what its name leads to is looked at
 * for each connection, and again where it has come about. One that leads elsewhere is `unsent`.
 * @throws OnceperError `receiver_url`, `receiver_address`, `receiver_network`, `webhook_secret`.
 */
export function createReceivers(receivers: readonly Receiver[], options: ReceiverOptions): Receivers {
  const { timeoutMs, networks = [] } = options;
  const allowed = networksWith(networks, options.resolve);
  const lines = new Map(receivers.map((receiver) => [receiver.name, openLine(receiver, timeoutMs, allowed)]));
  return {
    timeoutMs,
    async send(receiver, number, body, signal) {
      const line = lines.get(receiver);
      if (line === undefined) return { kind: 'unsent', code: 'receiver_unknown' };
      const headers = { 'content-type': 'application/cloudevents+json; charset=utf-8', ...signed(line, number, body) };
      const call = { method: 'POST', path: line.path, headers, body, signal } as const;
      return answerOf(await exchange(line.pool, { ...call, timeoutMs, maxBytes: MAX_ANSWER_BYTES }));
    },
    async close() {
      await Promise.all([...lines.values()].map(({ pool }) => pool.close()));
    },
  };
}

interface Line {
  readonly pool: Pool;
  readonly path: string;
  readonly signers: readonly WebhookSigner[];
}

function openLine({ name, url, secrets }: Receiver, timeoutMs: number, networks: Networks): Line {
  const base = parseReceiverUrl(url);
  if (base === null) throw urlFault(name);
  refuse(name, base, networks);
  const pool = openPool(base.origin, { connections: RECEIVER_CONNECTIONS, timeoutMs, ...networks });
  return { pool, path: base.pathname + base.search, signers: secrets.map(createWebhookSigner) };
}

/** A receiver's address: http or https, without user, password and fragment; null for any other text. */
export function parseReceiverUrl(url: string): URL | null {
  const base = URL.canParse(url) ? new URL(url) : null;
  if (base === null || !/^https?:$/.test(base.protocol) || base.hash !== '') return null;
  return base.username === '' && base.password === '' ? base : null;
}

/** The headers of one try; with two secrets the signature header holds two, with a blank between them. */
function signed({ signers }: Line, number: string, body: string): Record<string, string> {
  const at = new Date();
  const each = signers.map((signer) => signer.sign(number, at, body));
  const [first] = each;
  const signatures = each.map((headers) => headers['webhook-signature']).join(' ');
  return first === undefined ? {} : { ...first, 'webhook-signature': signatures };
}

/** A status counts once its line has come, whatever became of the rest of the answer. */
function answerOf(got: Exchange): NoticeAnswer {
  if (got.kind === 'unsent') return got;
  if (got.kind === 'broken' && got.status === null) return { ...got, kind: 'unknown', retryAfterMs: 0 };
  const status = got.status ?? 0;
  if (status >= 200 && status < 300) return { kind: 'acknowledged', status };
  if (status === 410) return { kind: 'gone', status };
  const retryAfterMs = got.kind === 'answered' ? patienceOf(got.headers) : 0;
  if (status === 429) return { kind: 'busy', retryAfterMs, status };
  return { kind: 'unknown', code: `http_${status}`, status, retryAfterMs: status === 503 ? retryAfterMs : 0 };
}

/** Refuses receivers whose address itself is internal and not in `networks`. Throws OnceperError `receiver_address`. */
export function refuseInternal(receivers: readonly ReceiverAddress[], networks: readonly string[]): void {
  const allowed = networksWith(networks);
  for (const { name, url } of receivers) refuse(name, new URL(url), allowed);
}

function refuse(name: string, { hostname }: URL, networks: Networks): void {
  if (networks.refuse(hostname) === null) return;
  throw new OnceperError({
    code: 'receiver_address',
    message: `the address of receiver ${name} is internal`,
    remedy: 'list it, or its network, in ONCEPER_RECEIVER_NETWORKS, if it is meant',
    at: name,
  });
}

function urlFault(name: string): OnceperError {
  return new OnceperError({
    code: 'receiver_url',
    message: `the address of receiver ${name} is no plain http or https address`,
    remedy: 'write it without user, password and fragment, for example https://accounting.example/hooks',
    at: name,
  });
}
