/** A neutral transfer, the body that is frozen with its number. `amount` is minor units as decimal text. */
export interface Transfer {
  readonly amount: string;
  readonly currency: string;
  readonly destination: string;
  readonly reference: string;
}

/** A transfer as the counterparty knows it. An unknown `status` is kept as it came. */
export interface FoundTransfer extends Transfer {
  readonly id: string;
  readonly status: string;
}

/**
 * What one call told us. `unknown` means sent with no proof either way (time-out, reset, 5xx, cut answer); `refused` is a
 * definite 4xx, which proves something on a first send only; `busy` asks for patience and proves that nothing was done.
 */
export type SendAnswer =
  | { readonly kind: 'accepted'; readonly transfer: FoundTransfer; readonly status: number }
  | { readonly kind: 'refused'; readonly code: string; readonly status: number }
  | { readonly kind: 'in_flight'; readonly status: number }
  | { readonly kind: 'key_reused'; readonly status: number }
  | { readonly kind: 'busy'; readonly retryAfterMs: number; readonly status: number }
  | { readonly kind: 'unknown'; readonly code: string; readonly status: number | null };

/** What a look-up by number told us. `not_found` is no proof before the counterparty's visibility delay has passed. */
export type LookUpAnswer =
  | { readonly kind: 'found'; readonly transfers: readonly FoundTransfer[]; readonly status: number }
  | { readonly kind: 'not_found'; readonly status: number }
  | { readonly kind: 'unknown'; readonly code: string; readonly status: number | null };

/** What a counterparty promises of itself; the relay's re-sends depend on these. Milliseconds. */
export interface GatewayProperties {
  readonly name: string;
  /** How long the counterparty remembers a number, counted from the first send. Beyond it a re-send could act twice. */
  readonly keyWindowMs: number;
  /** How long after acting a transfer may still be missing from look-ups. */
  readonly visibilityDelayMs: number;
  readonly maxNumberLength: number;
  readonly timeoutMs: number;
}

/** The counterparty port. Neither function throws for what a network can do; both take one try and never repeat it. */
export interface Gateway {
  readonly properties: GatewayProperties;
  send(number: string, body: string, signal?: AbortSignal): Promise<SendAnswer>;
  lookUp(number: string, signal?: AbortSignal): Promise<LookUpAnswer>;
  /** Transfers made in [from, to), oldest first, a page at a time; `after` is the last id of the page before. */
  list(range: {
    from: string;
    to: string;
    after?: string;
    limit: number;
  }): Promise<{ transfers: readonly FoundTransfer[]; hasMore: boolean }>;
  close(): Promise<void>;
}
