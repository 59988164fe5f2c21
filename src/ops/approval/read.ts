import type { Tx } from '../../kernel/sql.ts';
import type { ApprovalState } from '../../kernel/transitions.ts';
import { type Approval, approvalById, listApprovals } from '../../store/approvals.ts';
import { unknownApproval } from './request.ts';

/** One request as it stands. Throws OnceperError `unknown_approval`. */
export async function showApproval(tx: Tx, id: string): Promise<Approval> {
  const approval = await approvalById(tx, id);
  if (approval !== null) return approval;
  throw unknownApproval(id);
}

/** Requests in some states, newest first. */
export async function approvalsIn(
  tx: Tx,
  ask: { readonly states: readonly ApprovalState[]; readonly key: string | null; readonly limit: number },
): Promise<readonly Approval[]> {
  return listApprovals(tx, ask);
}
