import type { ActionState } from './transitions.ts';

/** The state of a period's key as a backfill finds it; without an action, how its newest run waits. */
export type BackfillState = ActionState | 'missing' | 'held' | 'deferred';

/** What a backfill does about a period. */
export type BackfillAct = 'run' | 'resume' | 'nothing' | 'untouched';

/**
 * What a backfill does about a period, by the state of its key: what is finished stays, what somebody works on stays theirs, and
 * what failed or was stopped goes on under the same key with the slices it has. There is no way to do a period again.
 */
export function backfillAct(state: BackfillState): BackfillAct {
  switch (state) {
    case 'missing':
    case 'held':
    case 'deferred':
      return 'run';
    case 'failed':
    case 'exhausted':
    case 'cancelled':
      return 'resume';
    case 'admitted':
    case 'running':
      return 'untouched';
    case 'done':
    case 'compensating':
    case 'compensated':
    case 'skipped':
      return 'nothing';
  }
}

/** More periods than this are asked for in parts: each is shown to whoever approves. */
export const MOST_PERIODS = 366;

/**
 * How many periods a backfill may have under way at once: what was asked for, and never the last place that the job's own limit
 * has, which stays free for the run that is due today.
 */
export function mostActive(asked: number, runsInFlight: number | null): number {
  return runsInFlight === null ? asked : Math.max(1, Math.min(asked, runsInFlight - 1));
}
