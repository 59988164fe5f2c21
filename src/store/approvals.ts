import type { ApprovalKind, AskedApproval } from '../kernel/approval.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import type { ApprovalState } from '../kernel/transitions.ts';
import { digestOf } from './approval-digest.ts';

/** A request as it is stored. `digest` is computed from what is stored, so that a plan changed by hand shows another one. */
export interface Approval extends AskedApproval {
  readonly id: string;
  readonly kind: ApprovalKind;
  /** What it is about; one request of a kind and subject is open at a time. */
  readonly subject: string;
  readonly job: string;
  readonly key: string | null;
  readonly ask: Readonly<Record<string, unknown>>;
  readonly reason: string;
  readonly plan: unknown;
  readonly revision: number;
  readonly state: ApprovalState;
  readonly requestedAt: Instant;
  readonly editedAt: Instant;
  readonly expiresAt: Instant;
  readonly decidedBy: string | null;
  readonly decidedAt: Instant | null;
  readonly decisionReason: string | null;
  readonly executedBy: string | null;
  readonly executedAt: Instant | null;
  readonly staleReason: string | null;
}

/** A request to be stored; who asks is its first editor too. */
export interface NewApproval {
  readonly id: string;
  readonly kind: ApprovalKind;
  readonly subject: string;
  readonly job: string;
  readonly key: string | null;
  readonly ask: Readonly<Record<string, unknown>>;
  readonly reason: string;
  readonly plan: unknown;
  readonly actor: string;
  readonly validMs: number;
}

const COLUMNS = `id, kind, subject, job, key, ask, reason, plan, revision, requested_by as "requestedBy",
  requested_at as "requestedAt", edited_by as "editedBy", edited_at as "editedAt", expires_at as "expiresAt",
  decided_by as "decidedBy", decided_at as "decidedAt", decision_reason as "decisionReason", executed_by as "executedBy",
  executed_at as "executedAt", stale_reason as "staleReason",
  expires_at <= clock_timestamp() as "isExpired",
  case when state in ('requested', 'approved') and expires_at <= clock_timestamp() then 'expired' else state end as state`;

/** The request with this id, or null. One whose time is over is shown as expired, whether or not anybody has written so. */
export async function approvalById(tx: Tx, id: string): Promise<Approval | null> {
  const { rows } = await tx.query<Omit<Approval, 'digest'>>(`select ${COLUMNS} from onceper.approval where id = $1`, [
    id,
  ]);
  return withDigest(rows[0]);
}

/** Locks a request until the transaction ends, so that its decision, its execution and an edit follow one another. */
export async function lockApproval(tx: Tx, id: string): Promise<Approval | null> {
  const { rows } = await tx.query<Omit<Approval, 'digest'>>(
    `select ${COLUMNS} from onceper.approval where id = $1 for update`,
    [id],
  );
  return withDigest(rows[0]);
}

/** The open request of a kind and subject, or null. */
export async function openApproval(tx: Tx, kind: ApprovalKind, subject: string): Promise<Approval | null> {
  const { rows } = await tx.query<Omit<Approval, 'digest'>>(
    `select ${COLUMNS} from onceper.approval where kind = $1 and subject = $2 and state in ('requested', 'approved')`,
    [kind, subject],
  );
  return withDigest(rows[0]);
}

/** Requests in some states, newest first, of one key or of all. */
export async function listApprovals(
  tx: Tx,
  ask: { readonly states: readonly ApprovalState[]; readonly key: string | null; readonly limit: number },
): Promise<Approval[]> {
  const { rows } = await tx.query<Omit<Approval, 'digest'>>(
    `select * from (
       select ${COLUMNS} from onceper.approval where $2::text is null or key = $2) shown
      where state = any ($1::text[])
      order by "requestedAt" desc, id limit $3`,
    [ask.states, ask.key, ask.limit],
  );
  return rows.map((row) => ({ ...row, digest: digestOf(row) }));
}

/** Stores a request; false where one of its kind and subject is open already, so that a double click is one request. */
export async function insertApproval(tx: Tx, approval: NewApproval): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into onceper.approval
       (id, kind, subject, job, key, ask, reason, plan, digest, requested_by, edited_by, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, clock_timestamp() + $11 * interval '1 millisecond')
     on conflict (kind, subject) where state in ('requested', 'approved') do nothing`,
    [
      approval.id,
      approval.kind,
      approval.subject,
      approval.job,
      approval.key,
      JSON.stringify(approval.ask),
      approval.reason,
      JSON.stringify(approval.plan),
      digestOf(approval),
      approval.actor,
      Math.round(approval.validMs),
    ],
  );
  return rowCount === 1;
}

/** Writes down that the time of a subject's open request is over; its id, or null where none is overdue. */
export async function expireOpen(tx: Tx, kind: ApprovalKind, subject: string): Promise<string | null> {
  const { rows } = await tx.query<{ id: string }>(
    `update onceper.approval set state = 'expired'
      where kind = $1 and subject = $2 and state in ('requested', 'approved') and expires_at <= clock_timestamp()
     returning id`,
    [kind, subject],
  );
  return rows[0]?.id ?? null;
}

/** Writes down that a request's time is over; false where it is not, or it was decided for good. */
export async function expireApproval(tx: Tx, id: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.approval set state = 'expired'
      where id = $1 and state in ('requested', 'approved') and expires_at <= clock_timestamp()`,
    [id],
  );
  return rowCount === 1;
}

/** The signed token that a decider was verified from, stored beside the decision; null where no token says who acts. */
export interface Proof {
  readonly token: string | null;
}

interface Changed {
  readonly changed: number;
}

/**
 * Decides a request, once: of any number of deciders at one moment one gets true. Approving names the digest that was shown;
 * whoever asked or edited last affects no row, and a constraint refuses them besides. A decision by a login that the guards bind
 * needs its proof: the database refuses it without a token of `actor` that is in time.
 */
export async function decideApproval(
  tx: Tx,
  decision: {
    readonly id: string;
    readonly to: 'approved' | 'rejected';
    readonly actor: string;
    readonly reason: string | null;
    readonly digest: string | null;
  } & Proof,
): Promise<boolean> {
  const { rows } = await tx.query<Changed>(
    `with decided as (
       update onceper.approval
          set state = $2, decided_by = $3, decided_at = clock_timestamp(), decision_reason = $4
        where id = $1 and state = 'requested' and expires_at > clock_timestamp()
          and ($2 = 'rejected' or (digest = $5 and requested_by <> $3 and edited_by <> $3))
       returning id, revision),
     proven as (
       insert into onceper.decision_proof (approval, revision, verb, actor, token)
       select id, revision, case $2 when 'approved' then 'approve' else 'reject' end, $3, $6 from decided where $6::text is not null)
     select count(*)::int4 as changed from decided`,
    [decision.id, decision.to, decision.actor, decision.reason, decision.digest, decision.token],
  );
  return rows[0]?.changed === 1;
}

/** Marks an approved request as executed, in the transaction that does what it allows; false where it is not approved. */
export async function markExecuted(
  tx: Tx,
  { id, actor, token }: { readonly id: string; readonly actor: string } & Proof,
): Promise<boolean> {
  const { rows } = await tx.query<Changed>(
    `with executed as (
       update onceper.approval set state = 'executed', executed_by = $2, executed_at = clock_timestamp()
        where id = $1 and state = 'approved' and expires_at > clock_timestamp()
       returning id, revision),
     proven as (
       insert into onceper.decision_proof (approval, revision, verb, actor, token)
       select id, revision, 'execute', $2, $3 from executed where $3::text is not null)
     select count(*)::int4 as changed from executed`,
    [id, actor, token],
  );
  return rows[0]?.changed === 1;
}

/** Marks an approved request as stale: the world is no longer what was shown. */
export async function markStale(tx: Tx, id: string, reason: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.approval set state = 'stale', stale_reason = $2 where id = $1 and state = 'approved'`,
    [id, reason],
  );
  return rowCount === 1;
}

/** What an edit writes over a request that is open. */
export interface ApprovalEdit {
  readonly id: string;
  readonly revision: number;
  readonly ask: Readonly<Record<string, unknown>>;
  readonly reason: string;
  readonly plan: unknown;
  readonly digest: string;
  readonly actor: string;
  readonly validMs: number;
}

/** Edits a request of the revision that was read: its editor becomes its asker, and what was approved is void. */
export async function editApproval(tx: Tx, edit: ApprovalEdit): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.approval
        set ask = $3, reason = $4, plan = $5, digest = $6, edited_by = $7, edited_at = clock_timestamp(),
            expires_at = clock_timestamp() + $8 * interval '1 millisecond', revision = revision + 1, state = 'requested',
            decided_by = null, decided_at = null, decision_reason = null
      where id = $1 and revision = $2 and state in ('requested', 'approved') and expires_at > clock_timestamp()`,
    [
      edit.id,
      edit.revision,
      JSON.stringify(edit.ask),
      edit.reason,
      JSON.stringify(edit.plan),
      edit.digest,
      edit.actor,
      Math.round(edit.validMs),
    ],
  );
  return rowCount === 1;
}

function withDigest(row: Omit<Approval, 'digest'> | undefined): Approval | null {
  return row === undefined ? null : { ...row, digest: digestOf(row) };
}
