import type { Anchor } from '../src/kernel/audit.ts';
import { parseKey } from '../src/kernel/key.ts';
import { type Identity, rewindReason } from '../src/kernel/rewind.ts';
import type { Tx } from '../src/kernel/sql.ts';
import type { ActionState } from '../src/kernel/transitions.ts';
import { actionByKey } from '../src/store/actions.ts';
import { appendAudit, auditFall, auditHead } from '../src/store/audit.ts';
import { workerActor } from '../src/store/audit-ledger.ts';
import { transaction } from '../src/store/database.ts';
import { advanceEpoch, freezeDelivery, lockIdentity, raiseEpoch } from '../src/store/epoch.ts';
import type { ActivityServices } from './services.ts';

/** What is remembered outside after a look. A worker of an earlier release gives no anchor. */
export interface Looked extends Identity {
  readonly audit?: Anchor;
}

/**
 * Compares the database with what was remembered outside it, freezes delivery where it was rewound or where its audit lacks what was
 * anchored, and counts one more look. Returns what is to be remembered now, with an anchor of the audit: one that the audit does not
 * bear out is remembered on, and nothing is anchored in its place, until a person has thawed. Executed twice it only counts twice.
 */
export async function look(services: ActivityServices, remembered: Looked | null): Promise<Looked> {
  const { db, log } = services;
  const before = remembered?.audit ?? null;
  const { identity, head, fall } = await transaction(db, { lockTimeout: 10_000, label: 'epoch' }, async (tx) => {
    // Under the row's lock: a copy that is put in place between the look and the count would be remembered as the original.
    const found = await lockIdentity(tx);
    // The head before the comparison: read after it, one that was cut in between would be anchored as if it had been borne out.
    const head = await auditHead(tx);
    const fall = before === null ? null : await auditFall(tx, before);
    const reason = (remembered === null ? null : rewindReason(remembered, found)) ?? fall;
    const isFrozen = reason !== null && (await freezeDelivery(tx, reason));
    if (reason !== null && remembered !== null) await raiseEpoch(tx, remembered.epoch);
    const identity = await advanceEpoch(tx);
    if (isFrozen) await reportFreeze(services, tx, { reason, key: null, run: null });
    return { identity, head, fall };
  });
  if (before === null || fall === null) return { ...identity, audit: services.anchor(head) };
  log({ event: 'audit_fell', anchored: before.seq, head: head.seq.toString(), reason: fall });
  return { ...identity, audit: before };
}

/** An owner whose period workflow Temporal refused to start, because one with that ID exists. */
export interface RefusedStart {
  readonly key: string;
  readonly run: string;
}

/**
 * Judges a refused start. A key that is not finished while Temporal has *completed* its workflow can't be, since that completes
 * after the close was committed: the database was rewound, and delivery freezes. Anything else is benign: another tick started the
 * owner, or it is done.
 */
export async function judgeRefusedStart(
  services: ActivityServices,
  start: RefusedStart,
): Promise<'rewound' | 'benign'> {
  const { db } = services;
  // Temporal first: an owner that finishes in between is then seen as done here, not as a rewind.
  const status = await services.statusOfWorkflow(start.key);
  const action = await actionByKey(db, start.key);
  const isUnfinished = action !== null && UNFINISHED.has(action.state) && action.ownerRun === start.run;
  if (!isUnfinished || status !== 'COMPLETED') return 'benign';
  const reason = `Temporal has completed ${start.key}, which this database has not finished`;
  await transaction(db, { lockTimeout: 10_000, label: 'freeze' }, async (tx) => {
    if (await freezeDelivery(tx, reason)) await reportFreeze(services, tx, { reason, ...start });
  });
  return 'rewound';
}

const UNFINISHED: ReadonlySet<ActionState> = new Set(['admitted', 'running', 'failed']);

/** Audits a freeze, last in its transaction, and tells whoever watches the log. */
async function reportFreeze(
  { log, release }: ActivityServices,
  tx: Tx,
  freeze: { readonly reason: string; readonly key: string | null; readonly run: string | null },
): Promise<void> {
  const { reason, key, run } = freeze;
  const job = key === null ? null : parseKey(key).job;
  await appendAudit(tx, { actor: workerActor(release), verb: 'freeze', job, key, run, detail: { reason } });
  log({ event: 'delivery_frozen', reason });
}
