import { endedPeriods } from '../jobs/due.ts';
import type { Registry } from '../jobs/registry.ts';
import { type JobRule, periodCalendar } from '../jobs/rule.ts';
import { OnceperError } from '../kernel/error.ts';
import { compareInstants } from '../kernel/instant.ts';
import { businessKey } from '../kernel/key.ts';
import { comparePeriods, parsePeriod } from '../kernel/period.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import type { ActionState } from '../kernel/transitions.ts';
import { type Action, actionsOfJob } from '../store/actions.ts';
import { clockOf } from '../store/database.ts';
import { type WaitingRun, waitingRunsOfJob } from '../store/waiting-runs.ts';
import { closingInstant } from './closing-instant.ts';
import { activeRuleOf } from './rule.ts';
import { isStalled } from './run-report.ts';

/** What has become of a period that had to be run; `missing` means that nothing ever asked for it. */
export type ExpectedState = ActionState | 'stalled' | 'held' | 'deferred' | 'not_yet_due' | 'missing';

export interface ExpectedPeriod {
  readonly period: string;
  readonly state: ExpectedState;
  readonly reason: string | null;
}

export interface Expectation {
  readonly job: string;
  readonly rule: JobRule;
  readonly periods: readonly ExpectedPeriod[];
}

/**
 * Every period from the rule's first to the last that has ended by the database's clock, with what became of it: computed
 * from the calendar and the ledger alone, so that a run which Temporal dropped is seen. `from` and `to` narrow the list.
 * Throws OnceperError `unknown_job`, `no_rule`, `malformed_period`, `malformed_range`.
 */
export async function expectedPeriods(
  tx: Tx,
  registry: Registry,
  ask: { readonly job: string; readonly from?: string; readonly to?: string },
): Promise<Expectation> {
  const { job } = ask;
  const { rule } = await activeRuleOf(tx, registry, job);
  const isAsked = rangeOf(rule, ask);
  const actions = new Map((await actionsOfJob(tx, job)).map((action) => [action.period, action]));
  const waiting = new Map((await waitingRunsOfJob(tx, job)).map((run) => [run.key, run]));
  const now = await clockOf(tx);
  const periods = endedPeriods(rule, now)
    .filter(isAsked)
    .map((period) => {
      const run = waiting.get(businessKey(job, period));
      return { period, ...standing(rule, period, now, actions.get(period), run) };
    });
  return { job, rule, periods };
}

function standing(
  rule: JobRule,
  period: string,
  now: Instant,
  action: Action | undefined,
  waiting: WaitingRun | undefined,
): Omit<ExpectedPeriod, 'period'> {
  if (action !== undefined) return standingOf(action);
  if (waiting !== undefined) return { state: waiting.decision, reason: `${waiting.code}: ${waiting.reason}` };
  const due = closingInstant(rule, period);
  if (due === null) return { state: 'missing', reason: 'the schedule has no instant that closes it' };
  return compareInstants(due, now) > 0
    ? { state: 'not_yet_due', reason: `its schedule instant ${due} is still to come` }
    : { state: 'missing', reason: `its schedule instant ${due} has passed and no run was opened` };
}

function standingOf(action: Action): Omit<ExpectedPeriod, 'period'> {
  if (isStalled(action)) {
    return { state: 'stalled', reason: `${action.state}, but its lease ended at ${action.leaseUntil}` };
  }
  return { state: action.state, reason: action.skippedReason };
}

function rangeOf(rule: JobRule, ask: { from?: string; to?: string }): (period: string) => boolean {
  const calendar = periodCalendar(rule);
  const from = ask.from === undefined ? null : parsePeriod(ask.from, calendar);
  const to = ask.to === undefined ? null : parsePeriod(ask.to, calendar);
  if (from !== null && to !== null && comparePeriods(from, to, calendar) > 0) {
    throw new OnceperError({
      code: 'malformed_range',
      message: `${from} comes after ${to}`,
      remedy: 'give the earlier period as --from',
      at: `--from ${from} --to ${to}`,
    });
  }
  return (period) =>
    (from === null || comparePeriods(period, from, calendar) >= 0) &&
    (to === null || comparePeriods(period, to, calendar) <= 0);
}
