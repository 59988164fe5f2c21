import { setTimeout as delay } from 'node:timers/promises';
import type { Anchor, AuditValue, AuditVerb } from '../kernel/audit.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import { appendAudit, auditFall } from '../store/audit.ts';
import { transaction } from '../store/database.ts';
import { freezeDelivery, markKnownOutside, readFreeze, thawDelivery } from '../store/epoch.ts';
import { type Compared, type Comparison, compareWithCounterparty } from './rewind/compare.ts';
import { type Driver, driveLost, forgottenKeys, settledKeys, type Waiting } from './rewind/drive.ts';

/** What a reconciliation came to, with what the last comparison found. */
export type Reconciled = Comparison & {
  /** Numbers that this database believed unsent and that are looked up before anything is sent. */
  readonly lookedUpFirst: number;
} & (
    | { readonly kind: 'not_frozen' | 'thawed' }
    /** Delivery stays frozen until a person has done what is waited for, or until the list is whole. */
    | { readonly kind: 'still_frozen'; readonly waiting: readonly Waiting[] }
  );

/** What a reconciliation works with. */
export interface Reconciling extends Compared, Omit<Driver, 'started'> {
  /** The id of whoever asks. */
  readonly actor: string;
  /** Whether what is remembered outside is this database already; asked once a second while it is waited for. */
  readonly isRemembered: () => Promise<boolean>;
  /** The last anchor of the audit that is remembered outside, or null. */
  readonly anchorOutside: () => Promise<Anchor | null>;
  /** Hears what is waited for, once a second. */
  readonly onWaiting: (waiting: readonly Waiting[]) => Promise<void>;
}

const LOOK_EVERY_MS = 1_000;
const MOST_AUDITED = 100;
const RECONCILE = { lockTimeout: 10_000, label: 'reconcile' };

/**
 * Compares the ledger with what the counterparty has executed since `since`, and goes on until delivery may: numbers that this
 * database believes unsent become unknown, so that each is looked up before anything leaves; keys that it lost are settled again,
 * and so is whatever they wait for and whatever is unfinished; then it compares once more, and thaws. A ledger that lost numbers
 * and is not frozen is frozen first. It ends early only where a person must do something, or where the list lacks what this
 * ledger knows was paid. Nothing is sent by this, each step is audited, and it may be killed and repeated at any place.
 * Throws OnceperError of the gateway's, the database's and Temporal's faults.
 */
export async function reconcileRewind(parts: Reconciling, since: Instant): Promise<Reconciled> {
  const { db } = parts;
  const driver: Driver = { ...parts, started: new Set() };
  let lookedUpFirst = 0;
  for (;;) {
    const isFrozen = (await readFreeze(db)) !== null;
    // Before the list is asked for: what is settled while it is compared has its numbers by the next comparison.
    const settled = await settledKeys(parts);
    const found = await compareWithCounterparty(parts, since, async (numbers) => {
      if (isFrozen) lookedUpFirst += await markKnown(parts, numbers);
    });
    if (!isFrozen && found.lost.length === 0) return { kind: 'not_frozen', lookedUpFirst, ...found };
    if (!isFrozen) {
      await freeze(parts, found);
      continue;
    }
    await auditComparison(parts, found);
    if (found.unlisted.length > 0) return { kind: 'still_frozen', lookedUpFirst, ...found, waiting: [] };
    const lost = [...found.lost, ...(await forgottenKeys(driver, found.lost))];
    const waiting = await untilSettled(parts, driver, lost, settled);
    if (waiting.length > 0) return { kind: 'still_frozen', lookedUpFirst, ...found, waiting };
    if (lost.length > 0) continue;
    await untilRemembered(parts);
    await thaw(parts, { known: found.known, lookedUpFirst });
    return { kind: 'thawed', lookedUpFirst, ...found };
  }
}

/** Drives what is lost until all of it is settled, or until nothing of it goes on without a person: that is returned. */
async function untilSettled(
  parts: Reconciling,
  driver: Driver,
  lost: Comparison['lost'],
  settled: ReadonlySet<string>,
): Promise<readonly Waiting[]> {
  for (;;) {
    const left = await driveLost(driver, lost, settled);
    if (left.every(({ goesOn }) => !goesOn)) return left;
    await parts.onWaiting(left);
    await delay(LOOK_EVERY_MS);
  }
}

/** The watch would freeze again what is thawed before it has looked: it compares with what it remembers. */
async function untilRemembered({ isRemembered, onWaiting }: Reconciling): Promise<void> {
  while (!(await isRemembered())) {
    await onWaiting([WATCH]);
    await delay(LOOK_EVERY_MS);
  }
}

const WATCH: Waiting = {
  key: 'the watch',
  state: 'remembers another database',
  goesOn: true,
  reason: 'a worker must run, so that it looks at this one',
};

async function freeze({ db, actor }: Reconciling, { lost }: Comparison): Promise<void> {
  const keys = lost.map(({ key }) => key);
  const reason = `the counterparty knows transfers of ${keys.slice(0, 3).join(', ')} that this database does not have`;
  await transaction(db, RECONCILE, async (tx) => {
    if (await freezeDelivery(tx, reason)) await appendStep(tx, actor, 'freeze', { reason });
  });
}

/** Thaws, and names the anchor that the audit has lost: it is given up by a person's word, and by nothing else. */
async function thaw(
  { db, actor, anchorOutside }: Reconciling,
  detail: { readonly known: number; readonly lookedUpFirst: number },
): Promise<void> {
  const anchor = await anchorOutside();
  await transaction(db, RECONCILE, async (tx) => {
    if (!(await thawDelivery(tx))) return;
    const isLost = anchor !== null && (await auditFall(tx, anchor)) !== null;
    await appendStep(tx, actor, 'thaw', { ...detail, ...(isLost ? { anchor: `${anchor.seq} ${anchor.hash}` } : {}) });
  });
}

/** Marks a page's numbers and audits how many of them this database believed unsent. */
function markKnown({ db, actor }: Reconciling, numbers: readonly string[]): Promise<number> {
  return transaction(db, RECONCILE, async (tx) => {
    const marked = await markKnownOutside(tx, numbers);
    if (marked > 0) await appendStep(tx, actor, 'reconcile-rewind', { lookedUpFirst: marked });
    return marked;
  });
}

/** The first of each kind: what an audit entry holds is bounded, and the counts say how many there are. */
function auditComparison({ db, actor }: Reconciling, found: Comparison): Promise<void> {
  const { known, twice, lost, unlisted } = found;
  return transaction(db, RECONCILE, (tx) =>
    appendStep(tx, actor, 'reconcile-rewind', {
      known,
      lost: lost.slice(0, MOST_AUDITED).map(({ key }) => key),
      unlisted: unlisted.length,
      paidTwice: twice.length,
      ...(twice.length === 0 ? {} : { twice: twice.slice(0, MOST_AUDITED).map(({ number }) => number) }),
    }),
  );
}

async function appendStep(
  tx: Tx,
  actor: string,
  verb: AuditVerb,
  detail: Readonly<Record<string, AuditValue>>,
): Promise<void> {
  await appendAudit(tx, { actor, verb, job: null, key: null, run: null, detail });
}
