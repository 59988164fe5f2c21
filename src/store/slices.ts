import type { EffectSelect } from '../kernel/effect-select.ts';
import { OnceperError } from '../kernel/error.ts';
import type { LeaseTimes } from '../kernel/lease.ts';
import type { Tx } from '../kernel/sql.ts';
import { type Database, type TransactionSettings, transaction } from './database.ts';

/** A range of subject ids, both ends inclusive, in the order of collation "C". */
export interface PlannedSlice {
  readonly slice: number;
  readonly firstSubject: string;
  readonly lastSubject: string;
}

/** A grant as its holder carries it: every write names the key and the fence. */
export interface Grant {
  readonly key: string;
  readonly fence: bigint;
  readonly times: LeaseTimes;
}

export type SliceOutcome =
  | { readonly kind: 'performed' }
  | { readonly kind: 'already_done' }
  | { readonly kind: 'lease_lost' };

/** What the job wrote for one slice: a small result, and the select of its effects. */
export interface SliceWork {
  readonly result: unknown;
  readonly effects: EffectSelect | null;
}

/** Stores the slice plan of a key in one statement; called by the first grant only. */
export async function storePlan(tx: Tx, key: string, slices: readonly PlannedSlice[]): Promise<void> {
  const { rowCount } = await tx.query(
    `insert into onceper.slice (key, slice, first_subject, last_subject)
     select $1, s.slice, s.first_subject, s.last_subject
       from unnest($2::int4[], $3::text[], $4::text[]) as s (slice, first_subject, last_subject)`,
    [key, slices.map((s) => s.slice), slices.map((s) => s.firstSubject), slices.map((s) => s.lastSubject)],
  );
  if (rowCount !== slices.length) throw planFault(key, rowCount, slices.length);
}

/** Numbers of the slices that no fence has finished, ascending. */
export async function unfinishedSlices(tx: Tx, key: string): Promise<number[]> {
  const { rows } = await tx.query<{ slice: number }>(
    `select slice from onceper.slice where key = $1 and done_at is null order by slice`,
    [key],
  );
  return rows.map((row) => row.slice);
}

/** How many slices a key has and how many are finished. */
export async function sliceCounts(tx: Tx, key: string): Promise<{ total: number; done: number }> {
  const { rows } = await tx.query<{ total: number; done: number }>(
    `select count(*)::int4 as total, count(done_at)::int4 as done from onceper.slice where key = $1`,
    [key],
  );
  return rows[0] ?? { total: 0, done: 0 };
}

/**
 * Performs one slice in one transaction: the fence and a live lease are checked by a key share lock, which a takeover waits
 * for; the slice row is marked, so that a second performer finds it done; then the job's rows, the effects, the result. Under
 * a lost lease nothing is written. Throws what the job throws, and OnceperError of the database's faults, after roll-back.
 */
export async function performSlice(
  db: Database,
  grant: Grant,
  slice: number,
  work: (tx: Tx, range: PlannedSlice) => Promise<SliceWork>,
): Promise<SliceOutcome> {
  return transaction(db, fencedSettings(grant.times, `slice ${grant.key} ${slice}`), async (tx) => {
    if (!(await holdsFence(tx, grant))) return { kind: 'lease_lost' };
    const range = await markSlice(tx, grant, slice);
    if (range === null) return { kind: 'already_done' };
    const { result, effects } = await work(tx, range);
    if (effects !== null) await writeEffects(tx, grant, effects);
    await storeResult(tx, grant, slice, result);
    return { kind: 'performed' };
  });
}

/** Time-outs of a transaction under a fence: they bound how long a takeover waits for it (kernel/lease.ts). */
export function fencedSettings(times: LeaseTimes, label: string): TransactionSettings {
  return {
    label,
    statementTimeout: times.statementTimeout,
    lockTimeout: times.statementTimeout,
    idleInTransactionTimeout: times.idleInTransactionTimeout,
    transactionTimeout: times.transactionTimeout,
    connectionCheckInterval: times.connectionCheckInterval,
  };
}

async function holdsFence(tx: Tx, grant: Grant): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from onceper.action
      where key = $1 and fence = $2 and state = 'running' and lease_until > clock_timestamp() for key share`,
    [grant.key, grant.fence],
  );
  return rowCount === 1;
}

async function markSlice(tx: Tx, grant: Grant, slice: number): Promise<PlannedSlice | null> {
  const { rows } = await tx.query<PlannedSlice>(
    `update onceper.slice set fence = $2, done_at = clock_timestamp()
      where key = $1 and slice = $3 and done_at is null
     returning slice, first_subject as "firstSubject", last_subject as "lastSubject"`,
    [grant.key, grant.fence, slice],
  );
  return rows[0] ?? null;
}

/** The nearest earlier effect that the outbox holds; none where a destination is new, or was left out for a time. */
const NEAREST_EARLIER = `(select earlier.number
     from unnest(e.waits_for) with ordinality as w (number, nth)
     join onceper.outbox earlier on earlier.number = w.number
    order by w.nth limit 1)`;

/**
 * Inserts the job's effects without a row passing through Node. A number that exists means that a slice was written twice, or
 * a key closed twice.
 */
export async function writeEffects(tx: Tx, grant: Grant, effects: EffectSelect): Promise<void> {
  const next = effects.values.length;
  const waitsFor = effects.isOrdered === true ? NEAREST_EARLIER : 'null';
  await tx.query(
    `insert into onceper.outbox (number, key, subject, effect, destination, body, written_by_fence, waits_for)
     select e.number, $${next + 1}, e.subject, e.effect, e.destination, e.body, $${next + 2}, ${waitsFor}
       from (${effects.text}) e`,
    [...effects.values, grant.key, grant.fence],
  );
}

async function storeResult(tx: Tx, grant: Grant, slice: number, result: unknown): Promise<void> {
  const { rowCount } = await tx.query(
    `update onceper.slice set result = $4 where key = $1 and slice = $3 and fence = $2`,
    [grant.key, grant.fence, slice, JSON.stringify(result)],
  );
  if (rowCount !== 1) throw planFault(grant.key, rowCount, 1);
}

function planFault(key: string, found: number, expected: number): OnceperError {
  return new OnceperError({
    code: 'slice_plan',
    message: `the slice plan of ${key} touched ${found} rows where ${expected} were expected`,
    remedy: 'a slice plan is written once, by the first grant: look for a hand that changed onceper.slice',
    at: key,
  });
}
