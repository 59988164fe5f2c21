import { type Refusal, refuseApproval, refuseDecision, refuseExecution } from '../../kernel/approval.ts';
import { OnceperError } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import { appendStep } from '../../store/approval-audit.ts';
import { digestOf } from '../../store/approval-digest.ts';
import {
  type Approval,
  approvalById,
  decideApproval,
  expireApproval,
  markExecuted,
  markStale,
  type Proof,
} from '../../store/approvals.ts';
import { type Database, transaction } from '../../store/database.ts';
import { lockJob } from '../../store/rules.ts';
import type { ActParts, Wake } from './act.ts';
import { actOf } from './acts.ts';
import { differenceOf } from './difference.ts';
import { mustLock, unknownApproval } from './request.ts';

/** How a decision or an execution went. A refusal is stored in the audit, and changes nothing else but what it says. */
export type Decided =
  | { readonly kind: 'rejected'; readonly approval: Approval }
  | { readonly kind: 'approved'; readonly approval: Approval }
  | { readonly kind: 'executed'; readonly approval: Approval; readonly wake: Wake }
  | {
      readonly kind: 'refused';
      readonly approval: Approval;
      readonly code: Refusal['code'] | 'world_moved';
      readonly reason: string;
    };

const WRITE = { label: 'approval', lockTimeout: 15_000 };

/**
 * Approves a request with the digest that was shown. Of any number of decisions at once one wins. Refused, and audited: whoever
 * asked or edited last, another digest, one that is decided or expired. Throws OnceperError `unknown_approval`.
 */
export async function approveRequest(
  db: Database,
  by: { readonly id: string; readonly actor: string; readonly digest: string; readonly reason: string | null } & Proof,
): Promise<Decided> {
  return transaction(db, WRITE, async (tx) => {
    const asked = await mustLock(tx, by.id);
    const refusal = refuseApproval(asked, by);
    if (refusal !== null) return refuse(tx, asked, by.actor, refusal);
    return decide(tx, asked, { ...by, to: 'approved' });
  });
}

/** Rejects a request, or takes one's own back. Refused where it is decided or expired. Throws `unknown_approval`. */
export async function rejectRequest(
  db: Database,
  by: { readonly id: string; readonly actor: string; readonly reason: string } & Proof,
): Promise<Decided> {
  return transaction(db, WRITE, async (tx) => {
    const asked = await mustLock(tx, by.id);
    const refusal = refuseDecision(asked);
    if (refusal !== null) return refuse(tx, asked, by.actor, refusal);
    return decide(tx, asked, { ...by, digest: null, to: 'rejected' });
  });
}

/**
 * Does what was approved, once: in one transaction under the job's lock the plan is made anew, compared with what was approved
 * to the last digit, and carried out. Where the world has moved the request ends `stale` and nothing is done. Throws what the
 * act throws, with nothing done, and OnceperError `unknown_approval`.
 */
export async function executeApproval(
  db: Database,
  parts: ActParts,
  by: { readonly id: string; readonly actor: string } & Proof,
): Promise<Decided> {
  const asked = await approvalById(db, by.id);
  if (asked === null) throw unknownApproval(by.id);
  return transaction(db, WRITE, async (tx) => {
    // Before the request's own row, in the order of `open`, which takes the job and then opens a request.
    await lockJob(tx, asked.job);
    const approval = await mustLock(tx, by.id);
    const refusal = refuseExecution(approval);
    if (refusal !== null) return refuse(tx, approval, by.actor, refusal);
    const world = await planAgain(tx, parts, approval);
    if (world.kind === 'moved') {
      await markStale(tx, approval.id, world.what);
      return refuse(tx, approval, by.actor, { code: 'world_moved', reason: world.what });
    }
    if (!(await markExecuted(tx, by))) throw new Error('a locked approval moved');
    const wake = await actOf(approval.kind).perform(tx, parts, { approval, actor: by.actor, plan: world.plan });
    await appendStep(tx, approval, { actor: by.actor, verb: 'execute', detail: { digest: approval.digest } });
    return { kind: 'executed', approval: await mustLock(tx, approval.id), wake };
  });
}

/** The plan anew where everything is as it was approved; else what no longer is, in words. */
async function planAgain(
  tx: Tx,
  parts: ActParts,
  approval: Approval,
): Promise<{ readonly kind: 'same'; readonly plan: unknown } | { readonly kind: 'moved'; readonly what: string }> {
  const { id, kind, ask, reason, digest } = approval;
  try {
    const { plan } = await actOf(kind).plan(tx, parts, ask);
    const isSame = digestOf({ id, kind, ask, reason, plan }) === digest;
    return isSame ? { kind: 'same', plan } : { kind: 'moved', what: differenceOf(approval.plan, plan) };
  } catch (error) {
    if (error instanceof OnceperError && MOVED.has(error.code)) return { kind: 'moved', what: error.message };
    throw error;
  }
}

/** What a plan says when there is nothing to be done any more; any other error is a fault of this moment. */
const MOVED: ReadonlySet<string> = new Set([
  'nothing_to_release',
  'nothing_to_take_over',
  'nothing_to_resolve',
  'nothing_to_retry',
  'nothing_to_skip',
  'nothing_on_hold',
  'nothing_to_adjust',
  'backfill_refused',
  'unknown_run',
]);

async function decide(
  tx: Tx,
  asked: Approval,
  by: {
    readonly id: string;
    readonly actor: string;
    readonly reason: string | null;
    readonly digest: string | null;
    readonly to: 'approved' | 'rejected';
  } & Proof,
): Promise<Decided> {
  if (!(await decideApproval(tx, by))) {
    // Judged under its lock, so that only the stored digest can differ from that of what is stored beside it.
    return refuse(tx, asked, by.actor, {
      code: 'digest_differs',
      reason: 'its plan is not the one that was asked for',
    });
  }
  const verb = by.to === 'approved' ? 'approve' : 'reject';
  const detail = { digest: asked.digest, ...(by.reason === null ? {} : { reason: by.reason }) };
  await appendStep(tx, asked, { actor: by.actor, verb, detail });
  return { kind: by.to, approval: await mustLock(tx, by.id) };
}

async function refuse(
  tx: Tx,
  asked: Approval,
  actor: string,
  refusal: { readonly code: Refusal['code'] | 'world_moved'; readonly reason: string },
): Promise<Decided> {
  if (refusal.code === 'approval_expired') await expireApproval(tx, asked.id);
  const { code, reason } = refusal;
  await appendStep(tx, asked, { actor, verb: 'refuse', detail: { code, digest: asked.digest } });
  return { kind: 'refused', approval: (await approvalById(tx, asked.id)) ?? asked, code, reason };
}
