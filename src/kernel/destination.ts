import type { LookUpAnswer, SendAnswer } from './transfer.ts';

/**
 * Where an effect goes: an account as the counterparty calls it, or a receiver of webhooks by the name that this deployment
 * gives it. A receiver's address and secrets are configuration, and stand in no row.
 */
export type Destination =
  | { readonly kind: 'account'; readonly account: string }
  | { readonly kind: 'webhook'; readonly receiver: string };

const WEBHOOK = 'webhook:';

/** A receiver's destination as it stands in the outbox: `webhook:accounting`. */
export function webhookDestination(receiver: string): string {
  return WEBHOOK + receiver;
}

/** What a destination of the outbox says. Whatever is no webhook is an account, which the counterparty knows or refuses. */
export function parseDestination(destination: string): Destination {
  return destination.startsWith(WEBHOOK)
    ? { kind: 'webhook', receiver: destination.slice(WEBHOOK.length) }
    : { kind: 'account', account: destination };
}

/** The counterparty of money as one destination: all accounts pause together, since what stops it is about us. */
export const ACCOUNTS = 'accounts';

/**
 * When a paused destination is tried again, by one payout: first after `firstMs`, then after twice as long each time, up to
 * `capMs`. Too rarely, and payouts wait long after the cause is mended; too often, and the counterparty is pestered.
 */
export interface ProbeTerms {
  readonly firstMs: number;
  readonly capMs: number;
}

export const PROBE_DEFAULTS = { firstMs: 30_000, capMs: 5 * 60_000 } as const satisfies ProbeTerms;

/** What an answer says about the destination as a whole; null where it says nothing. */
export type Said =
  | { readonly kind: 'pauses'; readonly code: string; readonly status: number }
  | { readonly kind: 'opens' | 'try_again' }
  | null;

/**
 * What one exchange says about its destination. Any answer about us pauses it. Only a probe opens it, by a transfer that is
 * accepted: a counterparty may know a payee's account as closed before it looks at our balance, give an old answer from memory,
 * or find what is to be sent. After such an answer another probe comes at once.
 */
export function saidOfDestination(
  probe: { readonly isProbe: boolean; readonly wouldSend: boolean },
  answer: SendAnswer | LookUpAnswer,
): Said {
  if (answer.kind === 'barred') return { kind: 'pauses', code: answer.code, status: answer.status };
  if (!probe.isProbe) return null;
  switch (answer.kind) {
    case 'accepted':
      return { kind: 'opens' };
    case 'refused':
    case 'key_reused':
    case 'repeated':
      return { kind: 'try_again' };
    case 'found':
    case 'not_found':
      return probe.wouldSend ? { kind: 'try_again' } : { kind: 'opens' };
    case 'in_flight':
    case 'busy':
    case 'unsent':
    case 'unknown':
      return null;
  }
}
