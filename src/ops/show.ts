import { isStalled } from '../jobs/expectation.ts';
import { nominalTimeOf } from '../jobs/occasion.ts';
import { type JobRule, periodCalendar, storedRule } from '../jobs/rule.ts';
import { businessKey } from '../kernel/key.ts';
import { periodBounds, periodClosedBy } from '../kernel/period.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import type { ActionState, AttemptOutcome, Decision, Trigger } from '../kernel/transitions.ts';
import type { InZone } from '../kernel/zone-clock.ts';
import { type Action, actionByKey } from '../store/actions.ts';
import { type Attempt, attemptsOfKey } from '../store/attempts.ts';
import { clockOf } from '../store/database.ts';
import { type DestinationStanding, readPause } from '../store/destinations.ts';
import { type EffectCounts, effectCounts, noticeCounts } from '../store/outbox-read.ts';
import { activeRule, ruleVersion } from '../store/rules.ts';
import { runsOfKey, type StoredRun } from '../store/runs.ts';
import { sliceCounts } from '../store/slices.ts';
import { type Document, documentOf } from './document.ts';
import { knownKey } from './known-key.ts';

/** All that the ledger knows of a key, read at `now`, the database's clock. */
export interface KeyStory {
  readonly key: string;
  readonly job: string;
  readonly period: string;
  readonly now: Instant;
  /** The zone and lease of the rule that the key is pinned to, or of the active one while it has no action. */
  readonly zone: InZone;
  readonly leaseMs: number;
  /** The schedule's instant for the period: what a backfill of it names. */
  readonly nominal: Instant | null;
  /** The key of the period before. */
  readonly previous: string | null;
  readonly action: Action | null;
  readonly runs: readonly StoredRun[];
  readonly attempts: readonly Attempt[];
  readonly slices: { readonly total: number; readonly done: number };
  /** Effects that move money, by state, and what is told to receivers of webhooks. */
  readonly effects: EffectCounts;
  readonly notices: EffectCounts;
  /** The pause of the counterparty, for which unfinished effects wait. */
  readonly pause: DestinationStanding | null;
}

/** Reads a key's story. Throws OnceperError `malformed_key`, `unknown_key`. */
export async function readKey(tx: Tx, key: string): Promise<KeyStory> {
  const { job, period } = await knownKey(tx, key);
  const action = await actionByKey(tx, key);
  const stored = action === null ? await activeRule(tx, job) : await ruleVersion(tx, job, action.ruleVersion);
  const rule = stored === null ? null : storedRule(stored);
  return {
    key,
    job,
    period,
    now: await clockOf(tx),
    zone: rule ?? { zone: 'UTC' },
    leaseMs: (rule?.leaseSeconds ?? 0) * 1_000,
    nominal: rule === null ? null : nominalTimeOf(rule, period),
    previous: rule === null ? null : businessKey(job, periodBefore(rule, period)),
    action,
    runs: await runsOfKey(tx, key),
    attempts: await attemptsOfKey(tx, key),
    slices: await sliceCounts(tx, key),
    effects: await effectCounts(tx, key),
    notices: await noticeCounts(tx, key),
    pause: await readPause(tx),
  };
}

/** The period that ended where this one starts: not always the previous label, since the clock may jump over one. */
function periodBefore(rule: JobRule, period: string): string {
  const calendar = periodCalendar(rule);
  return periodClosedBy(periodBounds(period, calendar).starts, calendar);
}

/** The state of a key without an action: that of its newest run. */
export type KeyState = ActionState | Extract<Decision, 'held' | 'deferred'>;

/** What `show --json` prints; fences are text, since they have no bound. */
export interface ShownKey {
  readonly key: string;
  readonly state: KeyState;
  readonly stalled: boolean;
  readonly fence: string;
  readonly owner: string | null;
  readonly leaseUntil: Instant | null;
  readonly ruleVersion: number | null;
  readonly release: string | null;
  readonly runs: readonly {
    readonly run: string;
    readonly scheduledAt: Instant | null;
    readonly trigger: Trigger;
    readonly actor: string;
    readonly decision: Decision;
    readonly code: string;
    readonly reason: string;
    readonly openedAt: Instant;
    readonly repeatOf: string | null;
    readonly releasedBy: string | null;
  }[];
  readonly attempts: readonly {
    readonly run: string;
    readonly number: number;
    readonly fence: string;
    readonly outcome: AttemptOutcome | null;
    readonly code: string | null;
    readonly startedAt: Instant;
    readonly endedAt: Instant | null;
    readonly release: string;
    readonly slicesFinished: number;
  }[];
  /** What close stored, whatever the job's result is; null while the key is not done. */
  readonly result: unknown;
  /** The same where it is a document with totals. */
  readonly document: Document | null;
  readonly slices: { readonly total: number; readonly done: number };
  readonly admittedAt: Instant | null;
  readonly sealedAt: Instant | null;
  readonly doneAt: Instant | null;
  readonly skippedReason: string | null;
  readonly delivering: boolean;
  /** Effects that move money, by state, and what is told to receivers of webhooks. */
  readonly effects: EffectCounts;
  readonly notices: EffectCounts;
}

export function shownKey(story: KeyStory): ShownKey {
  const { key, action, runs, attempts, slices, effects, notices } = story;
  return {
    key,
    state: stateOf(story),
    stalled: action !== null && isStalled(action),
    fence: String(action?.fence ?? 0n),
    owner: action?.ownerRun ?? null,
    leaseUntil: action?.leaseUntil ?? null,
    ruleVersion: action?.ruleVersion ?? null,
    release: action?.release ?? null,
    runs: runs.map(
      ({ startId, scheduledAt, trigger, actor, decision, code, reason, openedAt, repeatOf, releasedBy }) => {
        return { run: startId, scheduledAt, trigger, actor, decision, code, reason, openedAt, repeatOf, releasedBy };
      },
    ),
    attempts: attempts.map(({ run, number, fence, outcome, code, startedAt, endedAt, release, slicesFinished }) => {
      return { run, number, fence: String(fence), outcome, code, startedAt, endedAt, release, slicesFinished };
    }),
    result: action?.result ?? null,
    document: documentOf(action?.result),
    slices,
    admittedAt: action?.admittedAt ?? null,
    sealedAt: action?.sealedAt ?? null,
    doneAt: action?.doneAt ?? null,
    skippedReason: action?.skippedReason ?? null,
    delivering: action?.delivering ?? false,
    effects,
    notices,
  };
}

/** The action's state; without an action its newest run is held or deferred, since every other decision has one or no key. */
export function stateOf({ action, runs }: Pick<KeyStory, 'action' | 'runs'>): KeyState {
  if (action !== null) return action.state;
  return runs.findLast((run) => run.decision === 'held' || run.decision === 'deferred')?.decision === 'deferred'
    ? 'deferred'
    : 'held';
}
