import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { OnceperError } from '../kernel/error.ts';
import { isForeignText } from './foreign-text.ts';

/** The headers of Standard Webhooks, by which a message is signed and recognised. */
interface WebhookHeaders {
  readonly 'webhook-id': string;
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
}

type Verified =
  | { readonly kind: 'genuine'; readonly id: string; readonly text: string }
  | { readonly kind: 'refused'; readonly why: string };

/** Signs messages, and tells genuine ones: HMAC-SHA256 over id, time and bytes, compared in constant time. */
export interface WebhookSigner {
  sign(id: string, at: Date, body: string): WebhookHeaders;
  /** A message is genuine within five minutes of its time stamp; `body` are the bytes that came, before any parsing. */
  verify(headers: Readonly<Record<string, string | readonly string[] | undefined>>, body: Buffer): Verified;
}

const MAX_ID_LENGTH = 256;

/**
 * A signer with a shared secret: `whsec_` and base64.
 * @throws OnceperError `webhook_secret` where it is no base64, or shorter than 24 bytes (Standard Webhooks' least).
 */
export function createWebhookSigner(secret: string): WebhookSigner {
  const webhook = webhookOf(secret);
  return {
    sign: (id, at, body) => ({
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
      'webhook-signature': webhook.sign(id, at, body),
    }),
    verify(headers, body) {
      const given = Object.fromEntries(
        Object.entries(headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
      );
      const id = given['webhook-id'] ?? '';
      const text = exactText(body);
      if (text === null) return { kind: 'refused', why: 'the body is not UTF-8' };
      try {
        webhook.verify(text, given, { jsonParse: false });
      } catch (error) {
        if (error instanceof WebhookVerificationError) return { kind: 'refused', why: error.message };
        throw error;
      }
      if (!isForeignText(id, MAX_ID_LENGTH)) return { kind: 'refused', why: 'the id is too long, or no plain text' };
      return { kind: 'genuine', id, text };
    },
  };
}

/** The text of bytes that are exactly it: decoded loosely, other bytes would pass under the same signature. */
function exactText(body: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return null;
  }
}

/** True for `whsec_` (optional) and base64 of at least 24 bytes. */
export function isWebhookSecret(secret: string): boolean {
  return SECRET.test(secret);
}

const SECRET = /^(?:whsec_)?(?=[A-Za-z0-9+/=]{32,}$)[A-Za-z0-9+/]+={0,2}$/;

function webhookOf(secret: string): Webhook {
  if (!isWebhookSecret(secret)) throw secretFault();
  try {
    return new Webhook(secret);
  } catch {
    throw secretFault();
  }
}

function secretFault(): OnceperError {
  return new OnceperError({
    code: 'webhook_secret',
    message: 'the webhook secret is not whsec_ followed by base64 of at least 24 bytes',
    remedy: 'take it from the counterparty, or make one: echo "whsec_$(openssl rand -base64 32)"',
    at: 'ONCEPER_WEBHOOK_SECRET',
  });
}
