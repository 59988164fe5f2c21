import type { Gateway } from '../gateway/port.ts';
import type { Registry } from '../jobs/registry.ts';
import type { AuditValue, AuditVerb } from '../kernel/audit.ts';
import { parseEffectNumber } from '../kernel/effect-number.ts';
import { OnceperError } from '../kernel/error.ts';
import { parseKey } from '../kernel/key.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import { actionsOfJob } from '../store/actions.ts';
import { appendAudit } from '../store/audit.ts';
import { clockOf, type Database, transaction } from '../store/database.ts';
import { markKnownOutside, numbersMissing, readFreeze, thawDelivery } from '../store/epoch.ts';

/** A key that must be derived again: the counterparty knows effects of it that this database lost. */
interface LostKey {
  readonly key: string;
  readonly job: string;
  readonly period: string;
  readonly numbers: number;
}

export type Reconciled =
  | { readonly kind: 'not_frozen' }
  /** Delivery goes on: every number that the counterparty knows is here, and is looked up before it is sent. */
  | { readonly kind: 'thawed'; readonly known: number; readonly lookedUpFirst: number }
  /** Still frozen: these keys must run again first. Their numbers derive anew, letter for letter. */
  | {
      readonly kind: 'still_frozen';
      readonly known: number;
      readonly lost: readonly LostKey[];
      readonly redriven: number;
    };

const PAGE = 1_000;

/**
 * Compares a frozen ledger with what the counterparty has executed since `since`. Numbers that this database believes unsent
 * become unknown, so that each is looked up before anything leaves; owners of unfinished keys are started again by
 * `startOwner`, also where Temporal has completed them. Only when no known number is missing here does delivery go on.
 * Nothing is sent by this, and each step is audited. Throws OnceperError of the gateway's or the database's faults; asking again is always safe.
 */
export async function reconcileRewind(
  parts: {
    readonly db: Database;
    readonly registry: Registry;
    readonly gateway: Gateway;
    readonly startOwner: (key: string, run: string) => Promise<boolean>;
    /** The id of whoever asks. */
    readonly actor: string;
  },
  since: Instant,
): Promise<Reconciled> {
  const { db } = parts;
  if ((await readFreeze(db)) === null) return { kind: 'not_frozen' };
  const lost = new Map<string, LostKey>();
  let known = 0;
  let lookedUpFirst = 0;
  for await (const numbers of knownNumbers(parts, since)) {
    known += numbers.length;
    lookedUpFirst += await markKnown(db, parts.actor, numbers);
    for (const number of await numbersMissing(db, numbers)) addLost(lost, number);
  }
  if (lost.size === 0) {
    await transaction(db, RECONCILE, async (tx) => {
      if (await thawDelivery(tx)) await appendStep(tx, parts.actor, 'thaw', { known, lookedUpFirst });
    });
    return { kind: 'thawed', known, lookedUpFirst };
  }
  const redriven = await startUnfinished(parts);
  await transaction(db, RECONCILE, (tx) =>
    appendStep(tx, parts.actor, 'reconcile-rewind', { known, lost: [...lost.keys()].sort(), redriven }),
  );
  return { kind: 'still_frozen', known, lost: [...lost.values()].sort((a, b) => (a.key < b.key ? -1 : 1)), redriven };
}

const RECONCILE = { lockTimeout: 10_000, label: 'reconcile' };

/** Marks a page's numbers and audits how many of them this database believed unsent. */
function markKnown(db: Database, actor: string, numbers: readonly string[]): Promise<number> {
  return transaction(db, RECONCILE, async (tx) => {
    const marked = await markKnownOutside(tx, numbers);
    if (marked > 0) await appendStep(tx, actor, 'reconcile-rewind', { lookedUpFirst: marked });
    return marked;
  });
}

async function appendStep(
  tx: Tx,
  actor: string,
  verb: AuditVerb,
  detail: Readonly<Record<string, AuditValue>>,
): Promise<void> {
  await appendAudit(tx, { actor, verb, job: null, key: null, run: null, detail });
}

/** The counterparty's transfers that carry numbers of ours, a page at a time: memory stays flat. */
async function* knownNumbers(
  parts: { db: Database; registry: Registry; gateway: Gateway },
  since: Instant,
): AsyncGenerator<string[]> {
  const to = await clockOf(parts.db);
  let after: string | undefined;
  for (;;) {
    const range = { from: since, to, limit: PAGE, ...(after === undefined ? {} : { after }) };
    const page = await parts.gateway.list(range);
    const numbers = page.transfers.map((transfer) => transfer.reference);
    yield numbers.filter((number) => isOurs(parts.registry, number));
    const last = page.transfers.at(-1);
    if (!page.hasMore || last === undefined) return;
    after = last.id;
  }
}

/** The counterparty may serve others too: a reference that is no number of a job of ours is none of our business. */
function isOurs(registry: Registry, reference: string): boolean {
  try {
    return registry.find(parseKey(parseEffectNumber(reference).key).job) !== null;
  } catch (error) {
    if (error instanceof OnceperError) return false;
    throw error;
  }
}

function addLost(lost: Map<string, LostKey>, number: string): void {
  const { key } = parseEffectNumber(number);
  const { job, period } = parseKey(key);
  lost.set(key, { key, job, period, numbers: (lost.get(key)?.numbers ?? 0) + 1 });
}

async function startUnfinished(parts: {
  db: Database;
  registry: Registry;
  startOwner: (key: string, run: string) => Promise<boolean>;
}): Promise<number> {
  let started = 0;
  for (const job of parts.registry.ids) {
    for (const { key, state, ownerRun } of await actionsOfJob(parts.db, job)) {
      if (state !== 'admitted' && state !== 'running' && state !== 'failed') continue;
      if (await parts.startOwner(key, ownerRun)) started += 1;
    }
  }
  return started;
}
