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

/** Some holds: how many, and what they add up to per currency, in minor units. */
export interface HoldSum {
  readonly count: number;
  readonly amounts: Readonly<Record<string, bigint>>;
}

/** What a key has to do with holds: those of its own effects, and the released ones that its period settles. */
export interface HoldsOfKey {
  readonly held: HoldSum;
  readonly released: HoldSum;
  readonly settles: HoldSum;
}

/** `not_held` where the job's books have nothing of that number on hold. `already_released` says by whom. */
export type Released =
  | { readonly kind: 'released'; readonly hold: Hold }
  | { readonly kind: 'already_released'; readonly hold: Hold }
  | { readonly kind: 'not_held' };

/** What a job can say of money on hold, and do about it; each function gets the open transaction. */
export interface Holds {
  /** Holds in some states, of one key or of all, in the order of key, subject and currency; behind the effect `after`. */
  list(
    tx: Tx,
    ask: {
      readonly states: readonly HoldState[];
      readonly key: string | null;
      readonly after: string | null;
      readonly limit: number;
    },
  ): Promise<readonly Hold[]>;
  /** The holds of these effects; one without a hold is absent. */
  find(tx: Tx, numbers: readonly string[]): Promise<readonly Hold[]>;
  ofKey(tx: Tx, about: { readonly key: string; readonly period: string }): Promise<HoldsOfKey>;
  /**
   * Releases what an effect has on hold, once, to the next open period after its own, which settles it under that period's
   * numbers: the effect itself is never sent again. Its last statements hold the period against a seal until the commit.
   */
  release(tx: Tx, ask: { readonly number: string; readonly actor: string; readonly reason: string }): Promise<Released>;
  /** By the books and per currency, in minor units: what lies on hold, and what was ever released from it. */
  balances(tx: Tx): Promise<Readonly<Record<string, { readonly onHold: bigint; readonly released: bigint }>>>;
}
