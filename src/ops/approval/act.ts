import type { Registry } from '../../jobs/registry.ts';
import type { ApprovalKind } from '../../kernel/approval.ts';
import type { Instant, Tx } from '../../kernel/sql.ts';
import type { Approval } from '../../store/approvals.ts';

/** What a request states, as it is stored: ids, periods, words. What is a number is one that JSON has exactly. */
export type Ask = Readonly<Record<string, unknown>>;

/** What acts work with beside the open transaction. */
export interface ActParts {
  readonly registry: Registry;
  /** The deployed build, stored on what is made. */
  readonly release: string;
}

/** What is to be shown and digested, and what it is about; the same for the same world. */
interface Planned<Plan> {
  /** One request of a kind and subject is open at a time. */
  readonly subject: string;
  readonly job: string;
  readonly key: string | null;
  readonly plan: Plan;
}

/** Something that Temporal is to be told after the commit. Untold it is found in the rows, by the check that a worker starts. */
export type Wake =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'tick';
      readonly run: {
        readonly id: string;
        readonly job: string;
        readonly key: string;
        readonly scheduledAt: Instant;
        readonly overrides: Readonly<Record<string, string>>;
      };
    }
  | { readonly kind: 'backfill'; readonly id: string }
  | {
      readonly kind: 'owner';
      readonly key: string;
      readonly run: string;
      readonly job: string;
      readonly period: string;
    };

/**
 * Something that is done only with an approval. `plan` reads the world and locks nothing; it throws an OnceperError where there
 * is nothing to be done. `perform` does it, in the transaction that marks the approval as executed and under the job's lock,
 * after `plan` gave what was approved, which it is given; what it throws rolls all of that back.
 */
export interface Act<Plan = unknown> {
  readonly kinds: readonly ApprovalKind[];
  plan(tx: Tx, parts: ActParts, ask: Ask): Promise<Planned<Plan>>;
  perform(
    tx: Tx,
    parts: ActParts,
    approved: { readonly approval: Approval; readonly actor: string; readonly plan: Plan },
  ): Promise<Wake>;
}

/** A member of an ask that must be text. A row changed by hand is refused by its digest before this is asked. */
export function textOf(ask: Ask, name: string): string {
  const value = ask[name];
  if (typeof value === 'string') return value;
  throw new TypeError(`the request has no ${name}`);
}
