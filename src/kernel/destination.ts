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
