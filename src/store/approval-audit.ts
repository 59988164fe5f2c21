import type { AuditVerb } from '../kernel/audit.ts';
import type { Tx } from '../kernel/sql.ts';
import { digestOf } from './approval-digest.ts';
import type { Approval, NewApproval } from './approvals.ts';
import { appendAudit } from './audit.ts';

/** Audits that a request was stored, with the digest of what was shown; last in its transaction. */
export async function appendRequest(tx: Tx, approval: NewApproval): Promise<void> {
  const { id, kind, job, key, reason, actor } = approval;
  await appendAudit(tx, {
    actor,
    verb: 'request',
    job,
    key,
    run: runOf(approval),
    subject: id,
    detail: { kind, about: approval.subject, digest: digestOf(approval), reason },
  });
}

/** Audits what somebody did to a request, or was refused to do; last in its transaction. */
export async function appendStep(
  tx: Tx,
  approval: Approval,
  step: {
    readonly actor: string;
    readonly verb: Extract<AuditVerb, 'edit' | 'approve' | 'reject' | 'expire' | 'execute' | 'refuse'>;
    readonly detail: Readonly<Record<string, string | number | undefined>>;
  },
): Promise<void> {
  const { id, kind, job, key } = approval;
  const detail = { kind, about: approval.subject, ...step.detail };
  await appendAudit(tx, { actor: step.actor, verb: step.verb, job, key, run: runOf(approval), subject: id, detail });
}

function runOf({ ask }: Pick<Approval, 'ask'>): string | null {
  const run = ask['run'];
  return typeof run === 'string' ? run : null;
}
