import type { EndedAttempt } from '../kernel/budget.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import type { AttemptOutcome } from '../kernel/transitions.ts';

/** One pass claim → perform → close of an admitted run, as it is stored. */
export interface Attempt {
  readonly run: string;
  readonly number: number;
  readonly key: string;
  readonly execution: string;
  readonly pass: number;
  readonly fence: bigint;
  readonly release: string;
  readonly startedAt: Instant;
  readonly endedAt: Instant | null;
  readonly outcome: AttemptOutcome | null;
  readonly code: string | null;
  readonly detail: string | null;
  readonly slicesBegun: number;
  readonly slicesFinished: number;
}

const COLUMNS = `run, number, key, execution, pass, fence, release, started_at as "startedAt", ended_at as "endedAt", outcome,
  code, detail, slices_begun as "slicesBegun", slices_finished as "slicesFinished"`;

/** The attempt that a pass of an execution was granted, or null: asked twice, a claim gives its grant back. */
export async function attemptOfPass(
  tx: Tx,
  pass: { run: string; execution: string; pass: number },
): Promise<Attempt | null> {
  const { rows } = await tx.query<Attempt>(
    `select ${COLUMNS} from onceper.attempt where run = $1 and execution = $2 and pass = $3`,
    [pass.run, pass.execution, pass.pass],
  );
  return rows[0] ?? null;
}

/** The attempts of a key, in the order of their fences. */
export async function attemptsOfKey(tx: Tx, key: string): Promise<Attempt[]> {
  const { rows } = await tx.query<Attempt>(`select ${COLUMNS} from onceper.attempt where key = $1 order by fence`, [
    key,
  ]);
  return rows;
}

/** Begins the next attempt of a run; its number is the ledger's. */
export async function beginAttempt(
  tx: Tx,
  attempt: { run: string; key: string; execution: string; pass: number; fence: bigint; release: string },
): Promise<number> {
  const { rows } = await tx.query<{ number: number }>(
    `insert into onceper.attempt (run, number, key, execution, pass, fence, release)
     select $1, coalesce(max(number), 0) + 1, $2, $3, $4, $5, $6 from onceper.attempt where run = $1
     returning number`,
    [attempt.run, attempt.key, attempt.execution, attempt.pass, attempt.fence, attempt.release],
  );
  return rows[0]?.number ?? 0;
}

/**
 * Ends whatever attempt of the key its holder left open. A lower pass of the same execution was superseded by this claim;
 * any other holder's lease simply ended. Slices it finished are counted from the slices themselves.
 */
export async function endLeftOpen(tx: Tx, key: string, execution: string): Promise<number> {
  const { rowCount } = await tx.query(
    `update onceper.attempt a
        set outcome = case when a.execution = $2 then 'superseded' else 'lease_expired' end,
            ended_at = clock_timestamp(),
            slices_finished = (select count(*) from onceper.slice s where s.key = a.key and s.fence = a.fence)
      where a.key = $1 and a.outcome is null`,
    [key, execution],
  );
  return rowCount;
}

/** Ends an attempt with its outcome. 0 rows: somebody else ended it before, and that stands. */
export async function endAttempt(
  tx: Tx,
  end: {
    key: string;
    fence: bigint;
    outcome: AttemptOutcome;
    code: string | null;
    detail: string | null;
    slicesBegun: number;
  },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.attempt a
        set outcome = $3, code = $4, detail = $5, slices_begun = $6, ended_at = clock_timestamp(),
            slices_finished = (select count(*) from onceper.slice s where s.key = a.key and s.fence = a.fence)
      where a.key = $1 and a.fence = $2 and a.outcome is null`,
    [end.key, end.fence, end.outcome, end.code, end.detail, end.slicesBegun],
  );
  return rowCount === 1;
}

/** The ended attempts that the budget counts, oldest first: those granted since the key was last admitted. */
export async function endedSince(tx: Tx, key: string, budgetFrom: bigint): Promise<EndedAttempt[]> {
  const { rows } = await tx.query<EndedAttempt>(
    `select outcome, code, slices_begun as "slicesBegun", slices_finished as "slicesFinished"
       from onceper.attempt
      where key = $1 and fence > $2 and outcome is not null
      order by fence`,
    [key, budgetFrom],
  );
  return rows;
}
