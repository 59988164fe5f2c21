import type { Inspection } from '../kernel/admission.ts';
import type { EffectSelect } from '../kernel/effect-select.ts';
import type { PeriodBounds, PeriodCalendar } from '../kernel/period.ts';
import type { Tx } from '../kernel/sql.ts';
import type { EffectState } from '../kernel/transitions.ts';
import type { Adjusting } from './adjustment.ts';
import type { Holds } from './holds.ts';
import type { JobRule } from './rule.ts';

/** A business key as the job sees it: what to do, under which pinned rule. */
export interface JobContext {
  readonly key: string;
  readonly period: string;
  readonly ruleVersion: number;
  readonly rule: JobRule;
  readonly calendar: PeriodCalendar;
  readonly overrides: Readonly<Record<string, string>>;
}

/** A context under a grant: every write of the job carries this fence where it stores one. */
export interface GrantedContext extends JobContext {
  readonly fence: bigint;
}

/** A range of subject ids, both ends inclusive, in the order of collation "C". */
export interface SliceRange {
  readonly slice: number;
  readonly firstSubject: string;
  readonly lastSubject: string;
}

/** What a slice leaves behind: a small result that close adds up, and a select of its effects over the job's own tables. */
export interface Performed {
  readonly result: unknown;
  /** The store inserts what it yields; no row passes through Node. */
  readonly effects: EffectSelect | null;
}

/** Who is told of keys that close: receivers of webhooks, by the names that the configuration gives them. */
export interface Audience {
  readonly receivers: readonly string[];
  /** CloudEvents' `source`: which installation speaks. */
  readonly source: string;
}

/** What a period would come to as its rows stand now: how many subjects, and sums per currency, minor units as text. */
export interface Estimate {
  readonly subjects: number;
  readonly amounts: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** An effect whose fate became known, as it is handed back to the job in the transaction that records it. */
export interface SettledEffect {
  readonly number: string;
  readonly key: string;
  readonly subject: string;
  readonly state: Extract<EffectState, 'succeeded' | 'failed' | 'returned'>;
}

/**
 * What a job's author writes. Each function gets the open transaction, writes only the job's own schema, and may be called
 * again after a roll-back; none of them sends anything. The store calls them in the order of the path:
 * inspect (open) → seal, plan (first claim) → perform (each slice) → close, completed → settleEffects (as effects become final).
 */
export interface Job {
  readonly id: string;
  /** Whether a period waits until its predecessor is done. */
  readonly needs: 'previous' | 'nothing';
  /** Parses the job's own part of a rule file; throws OnceperError `malformed_rule` naming the field. */
  parseParameters(parameters: unknown): unknown;
  /** Checks the `--set name=value` pairs of a run; throws OnceperError `unknown_override`. */
  checkOverrides(overrides: Readonly<Record<string, string>>): void;
  /** Makes the job's period rows, ascending, where they are missing. Bounds are computed by the caller, once. */
  preparePeriods(tx: Tx, periods: readonly PeriodBounds[]): Promise<void>;
  /** Asked by open only where the key has no action. `overrides` may confirm what would otherwise be held. */
  inspect(tx: Tx, context: JobContext): Promise<Inspection>;
  /**
   * What an approver is shown before a period is settled: the same sums that `perform` would store, from the rows as they stand.
   * It reads only, and gives the same answer for the same rows. Absent where a job can't tell beforehand.
   */
  estimate?(tx: Tx, context: JobContext): Promise<Estimate>;
  /** Closes the period to new rows, exclusively, before the action row is locked; throws OnceperError to fail the attempt. */
  seal(tx: Tx, context: GrantedContext): Promise<void>;
  /** The slices of the sealed period, in key order; a statement of its own after seal, or it would not see what seal waited for. */
  plan(tx: Tx, context: GrantedContext): Promise<readonly SliceRange[]>;
  perform(tx: Tx, context: GrantedContext, slice: SliceRange): Promise<Performed>;
  /** Writes the document from the slices' stored results, in slice order, and returns the result that every duplicate is answered with. */
  close(tx: Tx, context: GrantedContext, slices: readonly unknown[]): Promise<unknown>;
  /**
   * What is told to others of a key that is done, as effects that move no money (currency XXX): a select over the job's own
   * tables, run after `close` in the same transaction. Their bodies hold no personal data. Absent where a job tells nobody.
   */
  completed?(context: JobContext, audience: Audience): EffectSelect;
  /** Posts what became of effects that move money, each at most once; `effects` are distinct numbers. */
  settleEffects(tx: Tx, effects: readonly SettledEffect[]): Promise<void>;
  /** The largest gap between a control account and its independent sum, per currency; 0n everywhere when the ledger balances. */
  ledgerGaps(tx: Tx): Promise<Readonly<Record<string, bigint>>>;
  /**
   * Money that has left by the job's own books and has no fate yet, per currency; `doctor` compares it with the outbox.
   * Absent where the job's effects move no money.
   */
  inTransit?(tx: Tx): Promise<Readonly<Record<string, bigint>>>;
  /** What can be said of money on hold, and done about it. Absent where the job keeps none. */
  readonly holds?: Holds;
  /**
   * Closes a period that is skipped, and moves what would be settled in it on to the next. Absent where nothing has to move.
   */
  skip?(tx: Tx, context: Pick<JobContext, 'key' | 'period'>): Promise<void>;
  /** Postings by hand, of periods that are done. Absent where the job keeps no books. */
  readonly adjusting?: Adjusting;
}
