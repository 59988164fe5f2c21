import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { actorId } from '../kernel/actor.ts';
import type { AuditHead, AuditValue, AuditVerb } from '../kernel/audit.ts';
import { parseKey } from '../kernel/key.ts';
import type { Tx } from '../kernel/sql.ts';
import type { Decision } from '../kernel/transitions.ts';
import { appendAudit } from './audit.ts';
import type { StoredRun } from './runs.ts';

/** The id of whatever process of a release serves the ledger. */
export function workerActor(release: string): string {
  return actorId('worker', release);
}

/** Decisions that are audited. A duplicate writes its run row and nothing else; an admission is followed by its grants. */
const AUDITED: Readonly<Partial<Record<Decision, AuditVerb>>> = {
  refused: 'refused',
  conflict: 'conflict',
  in_progress: 'in-progress',
  held: 'held',
  deferred: 'deferred',
};

/** True where a decision is audited, and so must be stored in a transaction with its entry. */
export function isAudited(decision: Decision): boolean {
  return AUDITED[decision] !== undefined;
}

/** Audits what was decided on a run, where it is news: a run that asks again every second is deferred once. */
export async function appendDecision(tx: Tx, run: StoredRun): Promise<void> {
  const verb = AUDITED[run.decision];
  if (verb === undefined || !run.isNews) return;
  const { startId, job, key, actor, code, reason, trigger, scheduledAt } = run;
  await appendAudit(tx, { actor, verb, job, key, run: startId, detail: { code, reason, trigger, scheduledAt } });
}

/** What a pass of an execution was granted. */
interface GrantedPass {
  readonly key: string;
  readonly run: string;
  readonly execution: string;
  readonly pass: number;
  readonly release: string;
}

/** Audits a grant, and before it the seal that its transaction made; `refused` is the code of a seal that was rolled back. */
export async function appendGrant(
  tx: Tx,
  { key, run, execution, pass, release }: GrantedPass,
  granted: {
    readonly fence: bigint;
    readonly attempt: number;
    readonly sealed?: { readonly slices: number };
    readonly refused?: string;
  },
): Promise<void> {
  const about = { actor: workerActor(release), job: parseKey(key).job, key, run };
  const fence = granted.fence.toString();
  if (granted.sealed !== undefined) {
    await appendAudit(tx, { ...about, verb: 'seal', detail: { fence, slices: granted.sealed.slices } });
  }
  const detail = { fence, attempt: granted.attempt, execution, pass, refused: granted.refused };
  await appendAudit(tx, { ...about, verb: 'grant', detail });
}

/** Audits a close, with a digest of the stored result: who restores a database can tell whether it is the same one. */
export async function appendClose(
  tx: Tx,
  closed: { readonly key: string; readonly run: string; readonly release: string; readonly fence: bigint },
  result: unknown,
): Promise<AuditHead> {
  return appendAudit(tx, {
    actor: workerActor(closed.release),
    verb: 'close',
    job: parseKey(closed.key).job,
    key: closed.key,
    run: closed.run,
    detail: { fence: closed.fence.toString(), result: digestOf(result) },
  });
}

/** Audits what a person did to a key, and why. */
export async function appendAct(
  tx: Tx,
  by: { readonly actor: string; readonly reason: string },
  act: {
    readonly verb: AuditVerb;
    readonly job: string;
    readonly key?: string;
    readonly subject?: string;
    readonly detail?: Readonly<Record<string, AuditValue | undefined>>;
  },
): Promise<void> {
  const { verb, job, key = null, subject = null, detail = {} } = act;
  await appendAudit(tx, {
    actor: by.actor,
    verb,
    job,
    key,
    run: null,
    subject,
    detail: { ...detail, reason: by.reason },
  });
}

/** SHA-256 of a value's canonical JSON, in hex. */
export function digestOf(value: unknown): string {
  return createHash('sha256')
    .update(canonicalize(value) ?? 'null')
    .digest('hex');
}
