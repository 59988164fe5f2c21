import { parseDestination } from '../kernel/destination.ts';
import type { Gateway, Receivers } from './port.ts';

/** The adapters of a deployment, one for each kind of destination. */
export interface Adapters {
  readonly gateway: Gateway;
  /** Absent where no receiver of webhooks is configured. */
  readonly receivers?: Receivers;
}

/** The adapter that a destination's kind asks for. */
export type Route =
  | { readonly kind: 'account'; readonly gateway: Gateway }
  | { readonly kind: 'webhook'; readonly receiver: string; readonly receivers: Receivers };

/** Chooses by the kind of destination alone: money can't take the way of the webhooks, nor a webhook that of the money. */
export function routeOf({ gateway, receivers }: Adapters, destination: string): Route {
  const parsed = parseDestination(destination);
  return parsed.kind === 'account'
    ? { kind: 'account', gateway }
    : { kind: 'webhook', receiver: parsed.receiver, receivers: receivers ?? NOBODY };
}

/** A relay without the receivers that its worker knows sends none: the notices wait, and end before a person. */
const NOBODY: Receivers = {
  timeoutMs: 0,
  send: () => Promise.resolve({ kind: 'unsent', code: 'receiver_unknown' }),
  close: () => Promise.resolve(),
};
