import type { Waiver } from '../kernel/admission.ts';
import type { Instant, Tx } from '../kernel/sql.ts';

/** What executed approvals allow a run beyond the rule. */
export async function waiversOf(tx: Tx, run: string): Promise<Waiver[]> {
  const { rows } = await tx.query<Waiver>(`select code, fence from onceper.waiver where run = $1`, [run]);
  return rows;
}

/** Gives a run a waiver under an approval that was executed in this transaction; given twice it is one. */
export async function giveWaiver(
  tx: Tx,
  waiver: { readonly run: string; readonly code: string; readonly fence: bigint; readonly approval: string },
): Promise<void> {
  await tx.query(
    `insert into onceper.waiver (run, code, fence, approval) values ($1, $2, $3, $4)
         on conflict on constraint waiver_pk do nothing`,
    [waiver.run, waiver.code, waiver.fence, waiver.approval],
  );
}

/** A run that waits no longer for a person, and that nobody has told so. */
export interface WaivedRun {
  readonly run: string;
  readonly job: string;
  readonly key: string;
  readonly scheduledAt: Instant;
}

/** Held runs whose hold was waived: whoever approved could not tell Temporal, and their tick must start again. */
export async function waivedHeldRuns(tx: Tx, limit: number): Promise<WaivedRun[]> {
  const { rows } = await tx.query<WaivedRun>(
    `select r.start_id as run, r.job_id as job, r.key, r.scheduled_at as "scheduledAt"
       from onceper.waiver w
       join onceper.run r on r.start_id = w.run
       left join onceper.action a on a.key = r.key
      where r.decision = 'held' and r.code = w.code and w.fence = coalesce(a.fence, 0)
      order by w.given_at limit $1`,
    [limit],
  );
  return rows;
}
