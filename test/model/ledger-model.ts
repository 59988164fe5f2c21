/**
 * A pure ledger of one job with two periods, written from the specification and sharing no decision with the product. It
 * knows no clock: a lease is live until a command ends it.
 */

/** What a sequence starts from: the job's rule, in two versions, and what it says of its periods. */
export interface World {
  readonly slices: number;
  /** The budgets of rule versions 1 and 2; version 2 becomes active by a command. */
  readonly budgets: readonly [number, number];
  readonly needsPrevious: boolean;
  readonly runsInFlight: number | null;
  readonly late: boolean;
  readonly inspection: 'ready' | 'empty' | 'no_fee_rule';
}

export type ActionState = 'admitted' | 'running' | 'failed' | 'exhausted' | 'cancelled' | 'skipped' | 'done';

export type Overrides = Readonly<Record<string, string>>;

export interface ModelAction {
  state: ActionState;
  fence: number;
  owner: string;
  exec: string | null;
  pass: number | null;
  live: boolean;
  overrides: Overrides;
  ruleVersion: 1 | 2;
  budgetFrom: number;
  sealed: boolean;
}

export interface ModelAttempt {
  readonly run: string;
  readonly number: number;
  readonly exec: string;
  readonly pass: number;
  readonly fence: number;
  outcome: string | null;
  code: string | null;
  begun: number;
  finished: number;
}

/** A business key. `slices` holds the fence that finished each slice, or null; it is empty until the first grant. */
export interface ModelKey {
  action: ModelAction | null;
  readonly attempts: ModelAttempt[];
  slices: (number | null)[];
  documentFence: number | null;
}

export interface ModelRun {
  readonly startId: string;
  readonly period: number;
  /** Which of a period's nominal times the run was planned for; 0 is the calendar's own. */
  readonly at: number;
  readonly trigger: 'schedule' | 'manual' | 'backfill';
  readonly overrides: Overrides;
  readonly repeatOf: string | null;
  decision: string;
  code: string;
  released: boolean;
  /** What a person lets it pass: a reason to hold, under the fence that its key had then. */
  readonly waivers: [code: string, fence: number][];
}

export interface Model {
  readonly world: World;
  activeRule: 1 | 2;
  /** While true the job refuses to seal a period that is still open. */
  refusesSeal: boolean;
  readonly keys: readonly ModelKey[];
  readonly runs: ModelRun[];
  /** Whoever judges admissions of the job right now. */
  jobLock: string | null;
}

export const PERIODS = 2;

export function newModel(world: World): Model {
  const key = (): ModelKey => ({ action: null, attempts: [], slices: [], documentFence: null });
  return {
    world,
    activeRule: 1,
    refusesSeal: false,
    keys: Array.from({ length: PERIODS }, key),
    runs: [],
    jobLock: null,
  };
}

/** The key of a period's index. */
export function keyAt(model: Model, period: number): ModelKey {
  const key = model.keys[period];
  if (key === undefined) throw new Error(`there is no period ${period}`);
  return key;
}

export function runOf(model: Model, startId: string): ModelRun | null {
  return model.runs.find((run) => run.startId === startId) ?? null;
}

/** Whether somebody may write under this fence: it is the newest grant, it was not ended, and its lease is live. */
export function holds(key: ModelKey, fence: number): boolean {
  const { action } = key;
  return action !== null && action.fence === fence && action.state === 'running' && action.live;
}

export function unfinished(key: ModelKey): number[] {
  return key.slices.flatMap((fence, slice) => (fence === null ? [slice] : []));
}

/** Ends the attempt of a key that is open, if there is one, with what its fence finished. */
export function endOpenAttempt(key: ModelKey, end: (attempt: ModelAttempt) => Partial<ModelAttempt>): void {
  const open = key.attempts.find((attempt) => attempt.outcome === null);
  if (open === undefined) return;
  Object.assign(open, end(open), { finished: key.slices.filter((fence) => fence === open.fence).length });
}

/** Attempts in a row, newest first, that finished no slice and whose end says something about the work. */
export function spentBudget(key: ModelKey, from: number): number {
  let spent = 0;
  for (const attempt of key.attempts.filter((one) => one.fence > from && one.outcome !== null).toReversed()) {
    if (attempt.finished > 0) break;
    if (!isFree(attempt)) spent += 1;
  }
  return spent;
}

/** An end that neither counts nor waits: the attempt was taken away before it could show anything. */
export function isFree(attempt: ModelAttempt): boolean {
  if (attempt.outcome === 'lease_lost') return attempt.begun === 0;
  return ['worker_lost', 'shutdown', 'lease_expired', 'superseded', 'cancelled'].includes(attempt.outcome ?? '');
}
