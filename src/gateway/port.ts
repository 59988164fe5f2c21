import type { NoticeAnswer } from '../kernel/notice.ts';
import type { FoundTransfer, LookUpAnswer, SendAnswer } from '../kernel/transfer.ts';

export type { FoundTransfer, LookUpAnswer, SendAnswer, Transfer } from '../kernel/transfer.ts';

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
  /** `repeats` is how many answers of this number were `repeated` before; without it none. */
  send(number: string, body: string, signal?: AbortSignal, repeats?: number): Promise<SendAnswer>;
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

/**
 * The port of those who are told. It has no look-up, and nothing to look up: a receiver recognises a message by its number for
 * good, which no payment provider promises; so it can never carry money. `send` takes one try, repeats nothing, does not throw
 * for what a network can do, and answers `unsent` for a receiver that it does not know.
 */
export interface Receivers {
  /** How long one send may take, milliseconds. */
  readonly timeoutMs: number;
  send(receiver: string, number: string, body: string, signal?: AbortSignal): Promise<NoticeAnswer>;
  close(): Promise<void>;
}
