import type { Waiver } from '../kernel/admission.ts';
import type { Tx } from '../kernel/sql.ts';

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
