import { compareInstants } from '../kernel/instant.ts';
import { businessKey } from '../kernel/key.ts';
import type { Instant } from '../kernel/sql.ts';
import type { ActionState } from '../kernel/transitions.ts';
import { endedPeriods } from './due.ts';
import { occasionsOf } from './occasion.ts';
import type { JobRule } from './rule.ts';

/** What has become of a period that had to be run; `missing` means that nothing ever asked for it. */
export type ExpectedState = ActionState | 'stalled' | 'held' | 'deferred' | 'not_yet_due' | 'missing';

export interface ExpectedPeriod {
  readonly period: string;
  readonly state: ExpectedState;
  readonly reason: string | null;
}

/** The states in which a period will not be settled unless somebody does something. */
export const OVERDUE: ReadonlySet<ExpectedState> = new Set(['missing', 'stalled', 'exhausted', 'held', 'cancelled']);

/** An action as the ledger has it. */
export interface FoundAction {
  readonly period: string;
  readonly state: ActionState;
  readonly leaseUntil: Instant;
  readonly leaseLeftMs: number;
  readonly skippedReason: string | null;
}

/** The newest held or deferred run of a key without an action. */
export interface FoundWaiting {
  readonly key: string;
  readonly decision: 'held' | 'deferred';
  readonly code: string;
  readonly reason: string;
}

/**
 * Every period from the rule's first to the last that has ended by `now`, with what became of it: from the calendar and the
 * ledger alone, so that a run which Temporal dropped, skipped or never had is seen.
 */
export function expectPeriods(
  rule: JobRule,
  now: Instant,
  found: { readonly actions: readonly FoundAction[]; readonly waiting: readonly FoundWaiting[] },
): ExpectedPeriod[] {
  const actions = new Map(found.actions.map((action) => [action.period, action]));
  const waiting = new Map(found.waiting.map((run) => [run.key, run]));
  return endedPeriods(rule, now).map((period) => ({
    period,
    ...standing(rule, period, now, actions.get(period), waiting.get(businessKey(rule.job, period))),
  }));
}

/** A lease that ended while the action was admitted or running, whatever Temporal says. */
export function isStalled(action: Pick<FoundAction, 'state' | 'leaseLeftMs'>): boolean {
  return (action.state === 'admitted' || action.state === 'running') && action.leaseLeftMs <= 0;
}

function standing(
  rule: JobRule,
  period: string,
  now: Instant,
  action: FoundAction | undefined,
  waiting: FoundWaiting | undefined,
): Omit<ExpectedPeriod, 'period'> {
  if (action !== undefined) return standingOf(action);
  if (waiting !== undefined) return { state: waiting.decision, reason: `${waiting.code}: ${waiting.reason}` };
  const [occasion] = occasionsOf(rule, period, period);
  const { at, how } = occasion ?? { at: now, how: 'check' };
  const isFired = how !== 'caught_up' && how !== 'check';
  if (compareInstants(at, now) > 0)
    return { state: 'not_yet_due', reason: `its schedule instant ${at} is still to come` };
  const reason = isFired
    ? `its schedule instant ${at} has passed and no run was opened`
    : `no firing closes it; it ended ${at} and no run was opened`;
  return { state: 'missing', reason };
}

function standingOf(action: FoundAction): Omit<ExpectedPeriod, 'period'> {
  if (isStalled(action)) {
    return { state: 'stalled', reason: `${action.state}, but its lease ended at ${action.leaseUntil}` };
  }
  return { state: action.state, reason: action.skippedReason };
}
