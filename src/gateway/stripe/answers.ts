import Stripe from 'stripe';
import { OnceperError } from '../../kernel/error.ts';
import { isBarredLookUp, isDefinite } from '../definite.ts';
import type { FoundTransfer, LookUpAnswer, SendAnswer } from '../port.ts';
import { retryAfterMs } from '../retry-after.ts';
import type { Called } from './transport.ts';

/** Reads one of Stripe's transfers as a neutral one, or null where it is none. */
export type ReadTransfer = (stated: unknown) => FoundTransfer | null;

/**
 * What a create means. The exchange decides whether a byte can have left; the package's error types decide the rest. A saved
 * 500 is repeated by Stripe for the same key, so a 5xx is unknown however often it comes. So is a saved refusal: it says that
 * nothing was done then, and nothing about now.
 */
export function sendAnswer(called: Called<unknown>, read: ReadTransfer): SendAnswer {
  const { exchange, value, thrown } = called;
  if (exchange.kind === 'unsent') return exchange;
  if (exchange.kind === 'broken') return { kind: 'unknown', code: exchange.code, status: exchange.status };
  const { status, headers } = exchange;
  if (status >= 200 && status < 300) {
    const transfer = thrown === null ? read(value) : null;
    return transfer === null
      ? { kind: 'unknown', code: 'malformed_answer', status }
      : { kind: 'accepted', transfer, status };
  }
  const code = errorCode(thrown, status);
  if (thrown instanceof Stripe.errors.StripeIdempotencyError) return { kind: 'key_reused', status };
  if (status === 409) return { kind: 'in_flight', status };
  if (thrown instanceof Stripe.errors.StripeRateLimitError || status === 429) {
    const waitMs = retryAfterMs(first(headers['retry-after']), first(headers['date']), Date.now());
    return { kind: 'busy', retryAfterMs: waitMs, status };
  }
  if (!isDefinite(status)) return { kind: 'unknown', code, status };
  if (FINAL_FOR_PAYEE.has(code)) return { kind: 'refused', code, status };
  return { kind: first(headers['idempotent-replayed']) === 'true' ? 'repeated' : 'barred', code, status };
}

/** Stripe's codes about the destination's account. All others are about ours: balance, limits, permissions, parameters. */
const FINAL_FOR_PAYEE: ReadonlySet<string> = new Set([
  'account_closed',
  'no_account',
  'insufficient_capabilities_for_transfer',
  'bank_account_unusable',
  'bank_account_declined',
  'bank_account_restricted',
]);

/** What a listing by transfer group means. A transfer that can't be read, or of another group, proves nothing. */
export function lookUpAnswer(
  number: string,
  called: Called<{ readonly data: readonly unknown[]; readonly has_more: boolean }>,
  read: ReadTransfer,
): LookUpAnswer {
  const { exchange, value, thrown } = called;
  if (exchange.kind !== 'answered') {
    return { kind: 'unknown', code: exchange.code, status: exchange.kind === 'broken' ? exchange.status : null };
  }
  const { status } = exchange;
  if (status !== 200)
    return { kind: isBarredLookUp(status) ? 'barred' : 'unknown', code: errorCode(thrown, status), status };
  if (value === null || !Array.isArray(value.data)) return { kind: 'unknown', code: 'malformed_answer', status };
  const transfers: FoundTransfer[] = [];
  for (const stated of value.data) {
    const transfer = read(stated);
    if (transfer === null) return { kind: 'unknown', code: 'malformed_answer', status };
    if (transfer.reference !== number) return { kind: 'unknown', code: 'answer_off_topic', status };
    transfers.push(transfer);
  }
  return transfers.length === 0 ? { kind: 'not_found', status } : { kind: 'found', transfers, status };
}

/** Why there is no page; the texts are ours, for Stripe's repeat parts of the key when it is wrong. */
export function listFault({ exchange, thrown }: Called<unknown>): OnceperError {
  const answered = exchange.kind === 'answered';
  return new OnceperError({
    code: answered ? 'gateway_answer' : 'gateway_unreachable',
    message: `Stripe gave no list of transfers (${answered ? errorCode(thrown, exchange.status) : exchange.code})`,
    remedy: 'ask again when it answers; nothing was changed',
  });
}

/** Stripe's code, else its type of error, else the status: stable words only, never the message. */
function errorCode(thrown: unknown, status: number): string {
  if (!(thrown instanceof Stripe.errors.StripeError)) return `http_${status}`;
  const stated = thrown.code ?? thrown.rawType;
  return typeof stated === 'string' && /^[\w.-]{1,64}$/.test(stated) ? stated : `http_${status}`;
}

function first(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : header?.[0];
}
