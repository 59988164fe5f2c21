import { kindOfHold } from '../kernel/approval.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import type { ActionState, Trigger } from '../kernel/transitions.ts';
import { type Action, actionByKey } from './actions.ts';
import { type NewApproval } from './approvals.ts';
import { ruleOfKey, type StoredRule } from './rules.ts';
import type { StoredRun } from './runs.ts';
import { sliceCounts } from './slices.ts';

/** What a job expects of a period, as `estimate` tells it; null where it can't. */
export type Expected = {
  readonly subjects: number;
  readonly amounts: Readonly<Record<string, Readonly<Record<string, string>>>>;
} | null;

/** Asks the job what it expects of a key under the rule that it is worked under. */
export type Expect = (
  tx: Tx,
  key: {
    readonly job: string;
    readonly key: string;
    readonly period: string;
    readonly overrides: Readonly<Record<string, string>>;
  },
  stored: StoredRule | null,
) => Promise<Expected>;

/** What an approver is shown of a run that waits for them, and what must still be so when it goes on. */
export interface HeldPlan {
  readonly job: string;
  readonly key: string;
  readonly period: string;
  readonly run: string;
  readonly scheduledAt: Instant | null;
  readonly trigger: Trigger;
  readonly overrides: Readonly<Record<string, string>>;
  /** Why it waits: the code of the hold, or the state of the key that it owns. */
  readonly heldFor: string;
  readonly keyState: ActionState | 'none';
  /** The fence of the key as text; 0 where it has no action. */
  readonly fence: string;
  readonly ruleVersion: number | null;
  readonly slices: { readonly total: number; readonly done: number };
  readonly expected: Expected;
}

/** Reads what is to be shown of a waiting run; null where it waits for nobody (any more). */
export async function heldPlan(tx: Tx, run: StoredRun, expect: Expect): Promise<HeldPlan | null> {
  const { job, key, period, overrides } = run;
  if (key === null || period === null) return null;
  const action = await actionByKey(tx, key);
  const heldFor = reasonToWait(run, action);
  if (heldFor === null) return null;
  const stored = await ruleOfKey(tx, { job, pinned: action?.ruleVersion ?? null });
  return {
    job,
    key,
    period,
    run: run.startId,
    scheduledAt: run.scheduledAt,
    trigger: run.trigger,
    overrides,
    heldFor,
    keyState: action?.state ?? 'none',
    fence: String(action?.fence ?? 0n),
    ruleVersion: stored?.version ?? null,
    slices: await sliceCounts(tx, key),
    expected: await expect(tx, { job, key, period, overrides }, stored),
  };
}

/** The request that lets a waiting run go on, on behalf of whoever asks. */
export function heldApproval(
  plan: HeldPlan,
  by: { readonly id: string; readonly actor: string; readonly reason: string; readonly validMs: number },
): NewApproval {
  const { run, job, key } = plan;
  return { ...by, kind: kindOfHold(plan.heldFor), subject: run, job, key, ask: { run }, plan };
}

/** Why a run with a key waits for a person: the code of its hold, or the state of the key that it owns; null where it doesn't. */
export function reasonToWait(run: StoredRun, action: Action | null): string | null {
  if (run.key === null) return null;
  if (run.decision === 'held') return run.code;
  const owns = run.decision === 'admitted' && action?.ownerRun === run.startId;
  return owns && (action.state === 'exhausted' || action.state === 'cancelled') ? action.state : null;
}
