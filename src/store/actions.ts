import type { ExistingAction } from '../kernel/admission.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import type { ActionState } from '../kernel/transitions.ts';

/** The ledger row of a business key as it stands. */
export interface Action extends ExistingAction {
  readonly key: string;
  readonly job: string;
  readonly period: string;
  readonly state: ActionState;
  readonly fence: bigint;
  readonly ownerRun: string;
  readonly ownerExec: string | null;
  readonly ownerPass: number | null;
  readonly leaseUntil: Instant;
  /** Milliseconds until the lease ends by the database's clock; 0 or less where it has ended. */
  readonly leaseLeftMs: number;
  readonly overrides: Readonly<Record<string, string>>;
  readonly ruleVersion: number;
  readonly release: string;
  readonly budgetFrom: bigint;
  readonly delivering: boolean;
  readonly sealedAt: Instant | null;
  readonly admittedAt: Instant;
  readonly doneAt: Instant | null;
  readonly skippedReason: string | null;
  readonly result: unknown;
}

const COLUMNS = `key, job, period, state, fence, owner_run as "ownerRun", owner_exec as "ownerExec", owner_pass as "ownerPass",
  lease_until as "leaseUntil", ceil(extract(epoch from lease_until - clock_timestamp()) * 1000)::float8 as "leaseLeftMs",
  overrides, rule_version as "ruleVersion", release, budget_from as "budgetFrom", delivering, sealed_at as "sealedAt",
  admitted_at as "admittedAt", done_at as "doneAt", skipped_reason as "skippedReason", result`;

/** Reads an action without a lock, or null where the key has none. */
export async function actionByKey(tx: Tx, key: string): Promise<Action | null> {
  const { rows } = await tx.query<Action>(`select ${COLUMNS} from onceper.action where key = $1`, [key]);
  return rows[0] ?? null;
}

/** The actions of a job's periods, oldest period first. */
export async function actionsOfJob(tx: Tx, job: string): Promise<Action[]> {
  const { rows } = await tx.query<Action>(
    `select ${COLUMNS} from onceper.action where job = $1 and adj is null order by period`,
    [job],
  );
  return rows;
}

/** What an admission writes: the key, who owns it, and the rule that is pinned for good. */
export interface NewAction {
  readonly key: string;
  readonly job: string;
  readonly period: string;
  readonly ownerRun: string;
  readonly fingerprint: string;
  readonly overrides: Readonly<Record<string, string>>;
  readonly ruleVersion: number;
  readonly release: string;
  readonly startWindowMs: number;
}

/** Wins the key for a run, or returns false where another run has it. Waits for whoever is deciding the key right now. */
export async function winAction(tx: Tx, action: NewAction): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into onceper.action
       (key, job, period, state, owner_run, lease_until, fingerprint, overrides, rule_version, release)
     values ($1, $2, $3, 'admitted', $4, clock_timestamp() + $5 * interval '1 millisecond', $6, $7, $8, $9)
     on conflict (key) do nothing`,
    [
      action.key,
      action.job,
      action.period,
      action.ownerRun,
      action.startWindowMs,
      action.fingerprint,
      JSON.stringify(action.overrides),
      action.ruleVersion,
      action.release,
    ],
  );
  return rowCount === 1;
}

/**
 * Admits an exhausted or cancelled key again for a run that was approved. Slices stay; the budget counts anew from the present
 * fence. Returns false where the key is in another state or under another fence than when it was asked for.
 */
export async function readmitAction(
  tx: Tx,
  again: { key: string; ownerRun: string; fence: bigint; startWindowMs: number },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.action
        set state = 'admitted', owner_run = $2, owner_exec = null, owner_pass = null, budget_from = fence,
            lease_until = clock_timestamp() + $3 * interval '1 millisecond'
      where key = $1 and fence = $4 and state in ('exhausted', 'cancelled')`,
    [again.key, again.ownerRun, again.startWindowMs, again.fence],
  );
  return rowCount === 1;
}

/** True when the key's document exists or the period was skipped for good: its successor need not wait. */
export async function isSettledKey(tx: Tx, key: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from onceper.action where key = $1 and state in ('done', 'compensating', 'compensated', 'skipped')`,
    [key],
  );
  return rowCount === 1;
}

/** True while any earlier period of the job is admitted or running, which is when a deferred run asks every second. */
export async function isEarlierUnderWay(tx: Tx, job: string, period: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from onceper.action
      where job = $1 and period < $2 and adj is null and state in ('admitted', 'running', 'failed') limit 1`,
    [job, period],
  );
  return rowCount > 0;
}
