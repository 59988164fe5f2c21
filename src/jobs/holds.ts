import type { Instant, Tx } from '../kernel/sql.ts';
import type { HoldState } from '../kernel/transitions.ts';

/** Money of an effect that failed or came back, kept for its subject until a person releases it; minor units. */
export interface Hold {
  readonly number: string;
  readonly key: string;
  readonly subject: string;
  readonly currency: string;
  readonly amount: bigint;
  readonly cause: 'failed' | 'returned';
  readonly state: HoldState;
  readonly heldAt: Instant;
  readonly release: HoldRelease | null;
}

/** Who released it and why, and the period that settles it. */
interface HoldRelease {
  readonly period: string;
  readonly actor: string;
  readonly reason: string;
  readonly at: Instant;
}

/** `not_held` where the job's books have nothing of that number on hold. `already_released` says by whom. */
export type Released =
  | { readonly kind: 'released'; readonly hold: Hold }
  | { readonly kind: 'already_released'; readonly hold: Hold }
  | { readonly kind: 'not_held' };

/** Which holds: in these states, of one key or of all, behind the effect `after`, at most so many. */
export interface HoldFilter {
  readonly states: readonly HoldState[];
  readonly key: string | null;
  readonly after: string | null;
  readonly limit: number;
}

/** What a job can say of money on hold, and do about it; each function gets the open transaction. */
export interface Holds {
  /** In the order of key, subject and currency. */
  list(tx: Tx, ask: HoldFilter): Promise<readonly Hold[]>;
  /** The holds of these effects; one without a hold is absent. */
  find(tx: Tx, numbers: readonly string[]): Promise<readonly Hold[]>;
  /**
   * Releases what an effect has on hold, once, to the next open period after its own, which settles it under that period's
   * numbers: the effect itself is never sent again. Its last statements hold the period against a seal until the commit.
   */
  release(tx: Tx, ask: { readonly number: string; readonly actor: string; readonly reason: string }): Promise<Released>;
}
