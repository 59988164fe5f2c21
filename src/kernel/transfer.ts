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
 * What one send told us. `unknown` means sent with no proof either way (time-out, reset, 5xx, cut answer); `refused` is final
 * for the payee, by a code that the adapter knows as such, and proves something on a first send only; `barred` is every other
 * 4xx: it is about us (balance, limits, permission, an outage) and says nothing of the payee; `repeated` is an old answer about
 * us that the counterparty gives from memory, and under this key for good; `busy` asks for patience and proves that nothing was
 * done; `unsent` means that no connection came about, so not one byte left.
 */
export type SendAnswer =
  | { readonly kind: 'accepted'; readonly transfer: FoundTransfer; readonly status: number }
  | { readonly kind: 'refused' | 'barred' | 'repeated'; readonly code: string; readonly status: number }
  | { readonly kind: 'in_flight'; readonly status: number }
  | { readonly kind: 'key_reused'; readonly status: number }
  | { readonly kind: 'busy'; readonly retryAfterMs: number; readonly status: number }
  | { readonly kind: 'unsent'; readonly code: string }
  | { readonly kind: 'unknown'; readonly code: string; readonly status: number | null };

/**
 * What a look-up by number told us. `not_found` is no proof before the counterparty's visibility delay has passed; `barred` is
 * a 4xx, which is about us and shows nothing.
 */
export type LookUpAnswer =
  | { readonly kind: 'found'; readonly transfers: readonly FoundTransfer[]; readonly status: number }
  | { readonly kind: 'not_found'; readonly status: number }
  | { readonly kind: 'barred'; readonly code: string; readonly status: number }
  | { readonly kind: 'unknown'; readonly code: string; readonly status: number | null };

/** The status of a transfer of which a part came back. No part is ever booked: a person decides what it means. */
const PARTLY_RETURNED = 'returned_in_part';

/** What is said of a transfer otherwise than its frozen body states: a stable code, and the same in words for a person. */
export interface Difference {
  readonly code: 'found_different' | 'returned_in_part';
  readonly words: string;
}

const COMPARED = ['amount', 'currency', 'destination', 'reference'] as const;

/**
 * Compares what a counterparty says of a transfer with what the frozen body states, null where that is no transfer. Every
 * news of an effect passes here before its status counts, whoever brings it, so that a fate is never taken from a statement
 * about other money. Null where it is the same money to the same place under the same number, and all of it.
 */
export function differenceOf(expected: Transfer | null, found: Transfer, status: string): Difference | null {
  if (expected === null) return { code: 'found_different', words: 'the frozen body states no transfer' };
  const differing = COMPARED.filter((part) => expected[part] !== found[part]);
  if (differing.length === 0) return status === PARTLY_RETURNED ? PART_OF_IT : null;
  const words = differing.map((part) => `${part} ${found[part]} where ${expected[part]} was to be sent`).join(', ');
  const isPart =
    differing.every((part) => part === 'amount') &&
    BigInt(found.amount) < BigInt(expected.amount) &&
    (status === 'returned' || status === PARTLY_RETURNED);
  return { code: isPart ? 'returned_in_part' : 'found_different', words };
}

const PART_OF_IT: Difference = { code: 'returned_in_part', words: 'a part came back, and how much is not said' };
