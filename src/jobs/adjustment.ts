import type { Tx } from '../kernel/sql.ts';

/** One manual posting: a positive amount goes from the account to what is payable to the subject, a negative one back. */
export interface ManualPosting {
  readonly subject: string;
  readonly currency: string;
  readonly account: string;
  /** Minor units. */
  readonly amount: bigint;
}

/** Manual postings with whom and why: the content of one adjustment of a period that is done. */
export interface Adjustment {
  /** `settlement:2026-09:adj-1`. */
  readonly key: string;
  readonly period: string;
  readonly postings: readonly ManualPosting[];
  readonly ruleVersion: number;
  readonly actor: string;
  readonly reason: string;
}

/** What a job does about adjustments; each function gets the open transaction. */
export interface Adjusting {
  /** Where money may come from or go to by hand. */
  readonly accounts: readonly string[];
  /** Those of the subjects that the job knows. */
  knownSubjects(tx: Tx, subjects: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * Posts the adjustment and writes its document; what it owes or takes is settled by the next open period. It sends nothing.
   * Returns the result that the adjustment's key is done with. Throws OnceperError `period_missing`.
   */
  post(tx: Tx, adjustment: Adjustment): Promise<unknown>;
}
