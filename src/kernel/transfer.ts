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
 * What one send told us. `unknown` means sent with no proof either way (time-out, reset, 5xx, cut answer); `refused` is a
 * definite 4xx, which proves something on a first send only; `busy` asks for patience and proves that nothing was done;
 * `unsent` means that no connection came about, so not one byte left.
 */
export type SendAnswer =
  | { readonly kind: 'accepted'; readonly transfer: FoundTransfer; readonly status: number }
  | { readonly kind: 'refused'; readonly code: string; readonly status: number }
  | { readonly kind: 'in_flight'; readonly status: number }
  | { readonly kind: 'key_reused'; readonly status: number }
  | { readonly kind: 'busy'; readonly retryAfterMs: number; readonly status: number }
  | { readonly kind: 'unsent'; readonly code: string }
  | { readonly kind: 'unknown'; readonly code: string; readonly status: number | null };

/** What a look-up by number told us. `not_found` is no proof before the counterparty's visibility delay has passed. */
export type LookUpAnswer =
  | { readonly kind: 'found'; readonly transfers: readonly FoundTransfer[]; readonly status: number }
  | { readonly kind: 'not_found'; readonly status: number }
  | { readonly kind: 'unknown'; readonly code: string; readonly status: number | null };
