/**
 * A life: for each state the states it may become. A state with no successor is final. The lists are drawn in
 * ARCHITECTURE.md and walked by test/kernel/transitions.test.ts. The store's where clauses keep to them, and the database refuses
 * whatever else is written: onceper.transition holds the same lists (`STORED_LIVES`).
 */
export type Transitions<State extends string> = Readonly<Record<State, readonly State[]>>;

/** True when `to` may follow `from`. */
export function mayBecome<State extends string>(life: Transitions<State>, from: State, to: State): boolean {
  return life[from].includes(to);
}

/** True when nothing may follow `state`. */
export function isFinal<State extends string>(life: Transitions<State>, state: State): boolean {
  return life[state].length === 0;
}

/** What `open` decides about a run, in order of precedence: the first that applies is the answer. */
const DECISIONS = ['refused', 'conflict', 'duplicate', 'in_progress', 'held', 'deferred', 'admitted'] as const;
export type Decision = (typeof DECISIONS)[number];

/** Only a deferred run asks again, and only a held one can be released; every other decision is final. */
export const RUN_LIFE: Transitions<Decision> = {
  refused: [],
  conflict: [],
  duplicate: [],
  in_progress: [],
  held: ['refused', 'conflict', 'duplicate', 'in_progress', 'held', 'deferred', 'admitted'],
  deferred: ['refused', 'conflict', 'duplicate', 'in_progress', 'held', 'deferred', 'admitted'],
  admitted: [],
};

export type Trigger = 'schedule' | 'manual' | 'backfill';

export type ActionState =
  | 'admitted'
  | 'running'
  | 'failed'
  | 'exhausted'
  | 'cancelled'
  | 'skipped'
  | 'done'
  | 'compensating'
  | 'compensated';

/** The states in which a key has the result that its close stored, which may be null. */
export const HAS_RESULT: ReadonlySet<string> = new Set<ActionState>(['done', 'compensating', 'compensated']);

/**
 * `running → running` is a takeover or the next pass of a superseded one; `failed` goes on by itself, `exhausted` stopped
 * and, like `cancelled`, is admitted again only by a release.
 */
export const ACTION_LIFE: Transitions<ActionState> = {
  admitted: ['running', 'cancelled', 'skipped'],
  running: ['running', 'failed', 'exhausted', 'cancelled', 'done'],
  failed: ['running', 'cancelled', 'skipped'],
  exhausted: ['admitted', 'cancelled', 'skipped'],
  cancelled: ['admitted', 'skipped'],
  skipped: [],
  done: ['compensating'],
  compensating: ['compensated'],
  compensated: [],
};

/** How an attempt ended. An attempt that has not ended has no outcome. */
const ATTEMPT_OUTCOMES = [
  'done',
  'failed',
  'worker_lost',
  'shutdown',
  'lease_lost',
  'lease_expired',
  'superseded',
  'cancelled',
] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** An attempt ends once, and how it ended stands. */
const ATTEMPT_LIFE: Transitions<AttemptOutcome | 'open'> = {
  open: ATTEMPT_OUTCOMES,
  done: [],
  failed: [],
  worker_lost: [],
  shutdown: [],
  lease_lost: [],
  lease_expired: [],
  superseded: [],
  cancelled: [],
};

export type EffectState =
  | 'pending'
  | 'sending'
  | 'unknown'
  | 'pending_external'
  | 'succeeded'
  | 'failed'
  | 'returned'
  | 'needs_attention'
  | 'dead';

/**
 * `sending` past its own lease is `unknown`: whoever takes it next looks the number up before anything is sent. So is a
 * `pending` one that the counterparty is found to know.
 */
export const EFFECT_LIFE: Transitions<EffectState> = {
  pending: ['sending', 'unknown', 'dead'],
  sending: ['succeeded', 'failed', 'pending', 'pending_external', 'unknown', 'needs_attention', 'dead'],
  unknown: ['unknown', 'succeeded', 'failed', 'pending_external', 'sending', 'needs_attention', 'dead'],
  pending_external: ['pending_external', 'succeeded', 'failed', 'needs_attention'],
  succeeded: ['returned'],
  failed: [],
  returned: [],
  needs_attention: ['sending', 'unknown', 'succeeded', 'failed', 'pending_external'],
  dead: ['pending', 'unknown', 'failed'],
};

/** Effects in these states still need the relay; all others are final or wait for a person. */
export const UNFINISHED_EFFECTS: readonly EffectState[] = ['pending', 'sending', 'unknown', 'pending_external'];

export type PeriodState = 'open' | 'sealed' | 'closed' | 'reconciled' | 'skipped';

/** A period of a job whose rows enter while it is open. The first grant seals it; a sealed period never changes. */
export const PERIOD_LIFE: Transitions<PeriodState> = {
  open: ['sealed', 'skipped'],
  sealed: ['closed', 'skipped'],
  closed: ['reconciled'],
  reconciled: [],
  skipped: [],
};

export type HoldState = 'held' | 'released';

/** Money of a payout that failed or came back. Released it belongs to a later period; held again it is another payout's. */
export const HOLD_LIFE: Transitions<HoldState> = {
  held: ['released'],
  released: [],
};

export type ApprovalState = 'requested' | 'approved' | 'rejected' | 'expired' | 'executed' | 'stale';

/**
 * A request that another person decides. Editing it makes it `requested` again, whatever was approved; `executed` is single
 * use; `stale` means that the world was no longer the one that was shown. Whoever asks may take the request back: `rejected`.
 */
export const APPROVAL_LIFE: Transitions<ApprovalState> = {
  requested: ['requested', 'approved', 'rejected', 'expired'],
  approved: ['requested', 'executed', 'stale', 'expired'],
  rejected: [],
  expired: [],
  executed: [],
  stale: [],
};

export type BackfillPeriodState = 'waiting' | 'started' | 'ended' | 'cancelled' | 'left';

/** A period of a backfill: `left` alone from the start, or started when there is room; a cancel stops only what waits. */
export const BACKFILL_PERIOD_LIFE: Transitions<BackfillPeriodState> = {
  waiting: ['started', 'cancelled'],
  started: ['ended'],
  ended: [],
  cancelled: [],
  left: [],
};

/** A life that the database guards: which rows have it is said in migrations/0031, and in which states they are made here. */
export interface StoredLife {
  readonly machine: string;
  readonly born: readonly string[];
  readonly life: Transitions<string>;
}

/** What onceper.transition holds, neither more nor less; a birth is a transition from `none`. */
export const STORED_LIVES: readonly StoredLife[] = [
  { machine: 'run', born: DECISIONS, life: RUN_LIFE },
  // Skipped is one that nobody had started, done an adjustment, which has no run.
  { machine: 'action', born: ['admitted', 'skipped', 'done'], life: ACTION_LIFE },
  { machine: 'attempt', born: ['open'], life: ATTEMPT_LIFE },
  { machine: 'effect', born: ['pending'], life: EFFECT_LIFE },
  { machine: 'period', born: ['open'], life: PERIOD_LIFE },
  { machine: 'approval', born: ['requested'], life: APPROVAL_LIFE },
  { machine: 'backfill_period', born: ['waiting', 'left'], life: BACKFILL_PERIOD_LIFE },
];
