import type { ActionState, Decision } from './transitions.ts';

/** The action row of a key as `open` reads it, or null where there is none. */
export interface ExistingAction {
  readonly state: ActionState;
  readonly fence: bigint;
  readonly ownerRun: string;
  readonly overrides: Readonly<Record<string, string>>;
}

/** A decision on a run, with a stable code and a sentence for people. */
export interface Verdict {
  readonly decision: Decision;
  readonly code: string;
  readonly reason: string;
}

/** The code of a run that is deferred until an earlier period is done. */
export const PREDECESSOR_NOT_DONE = 'predecessor_not_done';

/** What is known of a key that has no action yet, in the order in which it is asked. */
export interface Prospect {
  readonly predecessor: { readonly needed: boolean; readonly period: string | null; readonly done: boolean };
  /** The job's own answer: ready, nothing to do, or something that a person must supply. */
  readonly inspection: Inspection;
  /** True when the run comes later after its period's end than the rule allows, by whatever door. */
  readonly late: boolean;
  /** The limit of the job that is reached, or null. */
  readonly limit: { readonly code: string; readonly reason: string } | null;
}

/** What a job says of a period before it is admitted. `held` names what a person must supply or confirm. */
export type Inspection =
  | { readonly kind: 'ready' }
  | { readonly kind: 'held'; readonly code: string; readonly reason: string };

/**
 * What an executed approval allows a run beyond the rule: it lifts one reason to hold, as it stood under that fence of the key
 * (0 where it had no action), and nothing else. A key that was cancelled since is held again.
 */
export interface Waiver {
  readonly code: string;
  readonly fence: bigint;
}

function isWaived(waivers: readonly Waiver[], code: string, fence: bigint): boolean {
  return waivers.some((waiver) => waiver.code === code && waiver.fence === fence);
}

/**
 * Decides a run whose key already has an action. Order matters: an override that differs from what was settled is a
 * conflict before it is a duplicate, so that nobody reads the first result as an answer to another question.
 */
export function decideExisting(
  action: ExistingAction,
  stated: Readonly<Record<string, string>>,
  waivers: readonly Waiver[],
): Verdict {
  const differs = firstDifference(action.overrides, stated);
  if (action.state === 'skipped') {
    return { decision: 'refused', code: 'period_skipped', reason: 'the period was skipped, which is final' };
  }
  if (differs !== null) {
    return {
      decision: 'conflict',
      code: 'override_conflict',
      reason: `${differs} was stated differently from what this key was admitted with`,
    };
  }
  switch (action.state) {
    case 'done':
    case 'compensating':
    case 'compensated':
      return { decision: 'duplicate', code: 'already_done', reason: 'the key is done; this is its stored result' };
    case 'admitted':
    case 'running':
    case 'failed':
      return { decision: 'in_progress', code: 'owned', reason: `run ${action.ownerRun} owns the key` };
    case 'exhausted':
    case 'cancelled':
      return isWaived(waivers, action.state, action.fence)
        ? { decision: 'admitted', code: 'released', reason: `approved after it was ${action.state}` }
        : {
            decision: 'held',
            code: action.state,
            reason: `the key is ${action.state}; it may be claimed again only with an approval`,
          };
  }
}

/**
 * Decides a run whose key has no action. A predecessor that is not done defers even a period without rows of its own:
 * whether a balance is carried into it is not known before the predecessor's document exists.
 */
export function decideNew(prospect: Prospect, waivers: readonly Waiver[]): Verdict {
  const { predecessor, inspection, late, limit } = prospect;
  const isHeld = inspection.kind === 'held' && !isWaived(waivers, inspection.code, NO_ACTION);
  if (late && !isWaived(waivers, 'late', NO_ACTION)) {
    return { decision: 'held', code: 'late', reason: 'the run comes later after its period than the rule allows' };
  }
  if (isHeld && inspection.code !== 'empty') {
    return { decision: 'held', code: inspection.code, reason: inspection.reason };
  }
  if (predecessor.needed && !predecessor.done) {
    return {
      decision: 'deferred',
      code: PREDECESSOR_NOT_DONE,
      reason: `${predecessor.period} must be done first`,
    };
  }
  if (isHeld) return { decision: 'held', code: inspection.code, reason: inspection.reason };
  if (limit !== null) return { decision: 'deferred', ...limit };
  return { decision: 'admitted', code: 'admitted', reason: 'the key was free' };
}

/** The fence of a key that has no action. */
const NO_ACTION = 0n;

/** A deferred run that is alive asks again within this time, milliseconds. */
const SLOWEST_ASK_MS = 300_000;

/** A deferred run that nobody has asked for so long has lost its tick: twice the slowest, so that a busy queue is not taken for one. */
export const UNASKED_AFTER_MS = 2 * SLOWEST_ASK_MS;

/** Milliseconds until a deferred run asks again: 1 s while an earlier period is under way, else doubling to 5 minutes. */
export function askAgainAfter(asked: number, earlierUnderWay: boolean): number {
  if (earlierUnderWay) return 1_000;
  return Math.min(SLOWEST_ASK_MS, 1_000 * 2 ** Math.min(Math.max(0, asked - 1), 9));
}

function firstDifference(
  settled: Readonly<Record<string, string>>,
  stated: Readonly<Record<string, string>>,
): string | null {
  for (const [name, value] of Object.entries(stated)) if (settled[name] !== value) return `--set ${name}=${value}`;
  return null;
}
