import { randomUUID } from 'node:crypto';
import { normaliseActorId } from '../kernel/actor.ts';
import { APPROVAL_VALID_MS, kindOfHold } from '../kernel/approval.ts';
import type { Tx } from '../kernel/sql.ts';
import { appendRequest } from './approval-audit.ts';
import { expireOpen, insertApproval, openApproval } from './approvals.ts';
import { type Expect, heldApproval, heldPlan } from './held-plan.ts';
import type { StoredRun } from './runs.ts';

/**
 * Opens the request that lets a held run go on, in the transaction that stored the hold, on behalf of whoever started the run.
 * Held again for the same reason it is the same request, unless the time of that one is over.
 */
export async function requestForHeld(tx: Tx, run: StoredRun, expect: Expect): Promise<void> {
  const kind = kindOfHold(run.code);
  await expireOpen(tx, kind, run.startId);
  if ((await openApproval(tx, kind, run.startId)) !== null) return;
  const plan = await heldPlan(tx, run, expect);
  if (plan === null) return;
  const by = { id: randomUUID(), actor: normaliseActorId(run.actor), reason: run.reason, validMs: APPROVAL_VALID_MS };
  const approval = heldApproval(plan, by);
  if (await insertApproval(tx, approval)) await appendRequest(tx, approval);
}
