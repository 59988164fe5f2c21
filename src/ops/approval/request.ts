import { randomUUID } from 'node:crypto';
import { APPROVAL_VALID_MS, type ApprovalKind } from '../../kernel/approval.ts';
import { OnceperError } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import { appendRequest, appendStep } from '../../store/approval-audit.ts';
import { digestOf } from '../../store/approval-digest.ts';
import {
  type Approval,
  approvalById,
  editApproval,
  expireOpen,
  insertApproval,
  lockApproval,
  openApproval,
} from '../../store/approvals.ts';
import { type Database, transaction } from '../../store/database.ts';
import type { ActParts, Ask } from './act.ts';
import { actOf } from './acts.ts';

/** Who asks, and why. */
export interface By {
  readonly actor: string;
  readonly reason: string;
}

/** A request, and whether this asking stored it: asked again while it is open, it is the same one. */
export interface Requested {
  readonly approval: Approval;
  readonly isNew: boolean;
}

const WRITE = { label: 'approval', lockTimeout: 15_000 };

/**
 * Stores a request with exactly what is to be approved, and audits it. A double click is one request, with the words of the
 * first. Throws what the act's plan throws where there is nothing to be asked for.
 */
export async function requestApproval(
  db: Database,
  parts: ActParts,
  request: { readonly kind: ApprovalKind; readonly ask: Ask; readonly validMs?: number } & By,
): Promise<Requested> {
  const { kind, ask, actor, reason, validMs = APPROVAL_VALID_MS } = request;
  return transaction(db, WRITE, async (tx) => {
    const { subject, job, key, plan } = await actOf(kind).plan(tx, parts, ask);
    await expireOpen(tx, kind, subject);
    const approval = { id: randomUUID(), kind, subject, job, key, ask, reason, plan, actor, validMs };
    const isNew = await insertApproval(tx, approval);
    const stored = isNew ? await approvalById(tx, approval.id) : await openApproval(tx, kind, subject);
    if (stored === null) throw raced(subject);
    if (isNew) await appendRequest(tx, approval);
    return { approval: stored, isNew };
  });
}

/**
 * Plans an open request anew, with other words or another reason. Whoever edits becomes its asker beside the first one; the
 * digest is another, and what was approved is void. Throws OnceperError `unknown_approval`, `not_editable`.
 */
export async function editRequest(
  db: Database,
  parts: ActParts,
  edit: {
    readonly id: string;
    readonly actor: string;
    readonly reason?: string;
    readonly ask?: Ask;
    readonly validMs?: number;
  },
): Promise<Approval> {
  const { id, actor, validMs = APPROVAL_VALID_MS } = edit;
  return transaction(db, WRITE, async (tx) => {
    const before = await mustLock(tx, id);
    const ask = { ...before.ask, ...edit.ask };
    const reason = edit.reason ?? before.reason;
    const { plan, subject } = await actOf(before.kind).plan(tx, parts, ask);
    const digest = digestOf({ id, kind: before.kind, ask, reason, plan });
    const { revision } = before;
    const isSame = subject === before.subject;
    if (!isSame || !(await editApproval(tx, { id, revision, ask, reason, plan, digest, actor, validMs }))) {
      throw new OnceperError({
        code: 'not_editable',
        message: isSame ? `the request is ${before.state}` : 'it would be about something else',
        remedy: 'ask again with a request of its own',
        at: id,
      });
    }
    await appendStep(tx, before, { actor, verb: 'edit', detail: { reason, digest, revision: revision + 1 } });
    return (await approvalById(tx, id)) ?? before;
  });
}

/** Locks a request. Throws OnceperError `unknown_approval`. */
export async function mustLock(tx: Tx, id: string): Promise<Approval> {
  const approval = await lockApproval(tx, id);
  if (approval !== null) return approval;
  throw unknownApproval(id);
}

export function unknownApproval(id: string): OnceperError {
  return new OnceperError({
    code: 'unknown_approval',
    message: 'no request has this id',
    remedy: 'npx onceper approvals list',
    at: id,
  });
}

function raced(subject: string): OnceperError {
  return new OnceperError({
    code: 'request_raced',
    message: 'a request about it was decided at this moment',
    remedy: 'ask again',
    at: subject,
  });
}
