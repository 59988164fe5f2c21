import type { ApprovalState } from './transitions.ts';

/** What may be asked of an approver. A kind says what a digest means: the same plan under another kind is another request. */
export type ApprovalKind =
  | 'late_run'
  | 'empty_period'
  | 'claim_again'
  | 'held_run'
  | 'backfill'
  | 'takeover'
  | 'resolve_effect'
  | 'retry_effect'
  | 'skip'
  | 'release_hold'
  | 'adjustment'
  | 'activate_rule';

/** How long a request may be approved and executed, unless it says otherwise: a week, so that a weekend decides nothing. */
export const APPROVAL_VALID_MS = 7 * 86_400_000;

/** The kind of request that lets a held run go on, by the code it is held for. */
export function kindOfHold(
  code: string,
): Extract<ApprovalKind, 'late_run' | 'empty_period' | 'claim_again' | 'held_run'> {
  switch (code) {
    case 'late':
      return 'late_run';
    case 'empty':
      return 'empty_period';
    case 'exhausted':
    case 'cancelled':
      return 'claim_again';
    default:
      return 'held_run';
  }
}

/** A request as a decision on it sees it; `isExpired` by the database's clock. */
export interface AskedApproval {
  readonly state: ApprovalState;
  readonly requestedBy: string;
  readonly editedBy: string;
  readonly digest: string;
  readonly isExpired: boolean;
}

/** Why a step was refused: a stable code and a sentence. */
export interface Refusal {
  readonly code:
    | 'already_decided'
    | 'already_executed'
    | 'not_approved'
    | 'approval_expired'
    | 'own_request'
    | 'digest_differs';
  readonly reason: string;
}

/**
 * Why a person may not approve a request with the digest they were shown; null where they may. Whoever asked, or edited it
 * last, is never the one who approves, whatever else they are.
 */
export function refuseApproval(
  asked: AskedApproval,
  by: { readonly actor: string; readonly digest: string },
): Refusal | null {
  const decided = refuseDecision(asked);
  if (decided !== null) return decided;
  if (by.actor === asked.requestedBy || by.actor === asked.editedBy) {
    const did = by.actor === asked.editedBy && by.actor !== asked.requestedBy ? 'edited' : 'asked for';
    return { code: 'own_request', reason: `${by.actor} ${did} it, and may not approve it` };
  }
  if (by.digest !== asked.digest) {
    return {
      code: 'digest_differs',
      reason: 'the digest is not that of the plan as it stands: it was edited, or mistyped',
    };
  }
  return null;
}

/** Why nobody may decide a request any more; null while somebody may. */
export function refuseDecision(asked: AskedApproval): Refusal | null {
  if (asked.state !== 'requested' && asked.state !== 'expired') {
    return { code: 'already_decided', reason: `it is ${asked.state} already` };
  }
  if (asked.isExpired || asked.state === 'expired')
    return { code: 'approval_expired', reason: 'its time to be decided is over' };
  return null;
}

/** Why a request may not be executed now; null where it may. An approval is good for one execution. */
export function refuseExecution(asked: AskedApproval): Refusal | null {
  switch (asked.state) {
    case 'executed':
      return { code: 'already_executed', reason: 'it was executed, and an approval is good for one execution' };
    case 'requested':
      return asked.isExpired
        ? { code: 'approval_expired', reason: 'its time to be decided is over' }
        : { code: 'not_approved', reason: 'nobody has approved it as it stands' };
    case 'approved':
      return asked.isExpired
        ? { code: 'approval_expired', reason: 'it was approved, and its time to be executed is over' }
        : null;
    case 'expired':
      return { code: 'approval_expired', reason: 'its time is over' };
    case 'rejected':
    case 'stale':
      return { code: 'already_decided', reason: `it is ${asked.state}` };
  }
}
