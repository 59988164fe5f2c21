import type { Verdict } from '../kernel/admission.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import type { Decision, Trigger } from '../kernel/transitions.ts';

/** A run that asks to be opened. `period` and `key` are null only where it can never be admitted. */
export interface RunRequest {
  readonly startId: string;
  readonly job: string;
  readonly scheduledAt: Instant | null;
  readonly trigger: Trigger;
  readonly actor: string;
  readonly period: string | null;
  readonly key: string | null;
  readonly overrides: Readonly<Record<string, string>>;
}

/** A run as it is stored. */
export interface StoredRun {
  readonly startId: string;
  readonly job: string;
  readonly scheduledAt: Instant | null;
  readonly repeatOf: string | null;
  readonly trigger: Trigger;
  readonly actor: string;
  readonly period: string | null;
  readonly key: string | null;
  readonly overrides: Readonly<Record<string, string>>;
  readonly decision: Decision;
  readonly code: string;
  readonly reason: string;
  readonly asked: number;
  readonly openedAt: Instant;
  readonly decidedAt: Instant;
  readonly releasedBy: string | null;
  readonly releaseReason: string | null;
  /** True where this very statement stored the decision, and it was not what the run had been told before. */
  readonly isNews: boolean;
}

const COLUMNS = `start_id as "startId", job_id as job, scheduled_at as "scheduledAt", repeat_of as "repeatOf", trigger, actor,
  period, key, overrides, decision, code, reason, asked, opened_at as "openedAt", decided_at as "decidedAt",
  released_by as "releasedBy", release_reason as "releaseReason"`;

/** The run of a start id, or null. */
export async function runByStartId(tx: Tx, startId: string): Promise<StoredRun | null> {
  const { rows } = await tx.query<StoredRun>(
    `select ${COLUMNS}, false as "isNews" from onceper.run where start_id = $1`,
    [startId],
  );
  return rows[0] ?? null;
}

/** The runs of a key, oldest first. */
export async function runsOfKey(tx: Tx, key: string): Promise<StoredRun[]> {
  const { rows } = await tx.query<StoredRun>(
    `select ${COLUMNS}, false as "isNews" from onceper.run where key = $1 order by opened_at, start_id`,
    [key],
  );
  return rows;
}

/** True while `open` may still change its mind about a run. */
export function isUndecided(run: StoredRun): boolean {
  return run.decision === 'deferred' || run.decision === 'held';
}

/**
 * Records what was decided on a run, once. A start id that is already stored keeps its decision unless it is deferred or
 * held; a slot that another start id holds makes this a run of its own with `repeat_of` set. Returns what is stored now.
 */
export async function recordRun(tx: Tx, request: RunRequest, verdict: Verdict, asked: number): Promise<StoredRun> {
  const inserted = await insertRun(tx, request, verdict, asked);
  if (inserted !== null) return inserted;
  const stored = await runByStartId(tx, request.startId);
  if (stored === null) return insertRepeat(tx, request, verdict, asked);
  if (!isUndecided(stored)) return stored;
  return (await redecideRun(tx, request, verdict, asked)) ?? mustHaveRun(tx, request.startId);
}

/** Writes on a held or admitted run who gave its latest approval, and why; the approvals tell the whole story. */
export async function signRelease(
  tx: Tx,
  release: { startId: string; actor: string; reason: string },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.run set released_by = $2, released_at = clock_timestamp(), release_reason = $3
      where start_id = $1 and decision in ('held', 'admitted')`,
    [release.startId, release.actor, release.reason],
  );
  return rowCount === 1;
}

/** No conflict target: both uniques, the start id and the slot, answer with no row instead of an error. */
async function insertRun(tx: Tx, run: RunRequest, verdict: Verdict, asked: number): Promise<StoredRun | null> {
  const { rows } = await tx.query<StoredRun>(
    `insert into onceper.run (start_id, job_id, scheduled_at, trigger, actor, period, key, overrides, decision, code, reason, asked)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     on conflict do nothing
     returning ${COLUMNS}, true as "isNews"`,
    [...identity(run), verdict.decision, verdict.code, verdict.reason, asked],
  );
  return rows[0] ?? null;
}

async function insertRepeat(tx: Tx, run: RunRequest, verdict: Verdict, asked: number): Promise<StoredRun> {
  const { rows } = await tx.query<StoredRun>(
    `insert into onceper.run (start_id, job_id, scheduled_at, trigger, actor, period, key, overrides, decision, code, reason, asked, repeat_of)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, first.start_id
       from onceper.run first
      where first.job_id = $2 and first.scheduled_at = $3 and first.repeat_of is null
     on conflict (start_id) do nothing
     returning ${COLUMNS}, true as "isNews"`,
    [...identity(run), verdict.decision, verdict.code, verdict.reason, asked],
  );
  return rows[0] ?? mustHaveRun(tx, run.startId);
}

/** Decides anew. A run that waited for somebody who knows its job gets its period, key and trigger when one does. */
async function redecideRun(tx: Tx, run: RunRequest, verdict: Verdict, asked: number): Promise<StoredRun | null> {
  const { startId, trigger, period, key } = run;
  const { rows } = await tx.query<StoredRun>(
    `update onceper.run
        set decision = $2, code = $3, reason = $4, asked = $5, decided_at = clock_timestamp(), period = coalesce(period, $6),
            key = coalesce(key, $7), trigger = case when key is null then $8 else trigger end
       from (select decision as was, code as was_code from onceper.run where start_id = $1 for update) before
      where start_id = $1 and decision in ('deferred', 'held')
     returning ${COLUMNS}, was <> $2 or ($2 = 'held' and was_code is distinct from $3) as "isNews"`,
    [startId, verdict.decision, verdict.code, verdict.reason, asked, period, key, trigger],
  );
  return rows[0] ?? null;
}

async function mustHaveRun(tx: Tx, startId: string): Promise<StoredRun> {
  const stored = await runByStartId(tx, startId);
  if (stored !== null) return stored;
  throw new OnceperError({
    code: 'run_vanished',
    message: `run ${startId} could neither be stored nor found`,
    remedy: 'runs are never deleted: look for a hand that did',
    at: startId,
  });
}

function identity(run: RunRequest): unknown[] {
  return [
    run.startId,
    run.job,
    run.scheduledAt,
    run.trigger,
    run.actor,
    run.period,
    run.key,
    JSON.stringify(run.overrides),
  ];
}
