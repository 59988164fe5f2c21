import { type AfterAttempt, judgeBudget } from '../kernel/budget.ts';
import { OnceperError } from '../kernel/error.ts';
import type { LeaseTimes } from '../kernel/lease.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import { type Action, actionByKey } from './actions.ts';
import { attemptOfPass, beginAttempt, endAttempt, endedSince, endLeftOpen } from './attempts.ts';
import { appendGrant } from './audit-ledger.ts';
import { backendOf, boundedWait } from './blockers.ts';
import { type Database, transaction } from './database.ts';
import { FAULTS_OF_THE_DATABASE } from './fault.ts';
import { type PlannedSlice, storePlan, unfinishedSlices } from './slices.ts';

/** A pass of the owner's period workflow asking for the next attempt of its run. */
export interface ClaimRequest {
  readonly key: string;
  readonly run: string;
  readonly execution: string;
  readonly pass: number;
  readonly release: string;
  readonly budget: number;
  readonly times: LeaseTimes;
}

/** What the job does inside the first grant; a refusal is thrown as an OnceperError and fails the attempt with its code. */
export interface ClaimHooks {
  seal(tx: Tx, fence: bigint): Promise<void>;
  plan(tx: Tx, fence: bigint): Promise<readonly PlannedSlice[]>;
}

export type Claim =
  | { readonly kind: 'granted'; readonly fence: bigint; readonly attempt: number; readonly slices: readonly number[] }
  | { readonly kind: 'busy'; readonly until: Instant; readonly waitMs: number }
  | { readonly kind: 'done'; readonly result: unknown }
  /** A later pass of this very execution was granted: go on with a pass above it. */
  | { readonly kind: 'superseded'; readonly pass: number }
  /** The job refused the seal: the attempt is recorded as failed and the period stays open. */
  | { readonly kind: 'failed'; readonly code: string; readonly next: AfterAttempt }
  | { readonly kind: 'refused'; readonly code: string; readonly reason: string };

/** Thrown inside the grant's transaction to roll it back; the caller then reads why the row could not be had. */
class GrantLost extends Error {}

/** A try that another claim overtook between its transactions, and that may be made again at once. */
const OVERTAKEN = { kind: 'overtaken' } as const;

/**
 * Grants the owner run its next attempt: fence + 1, a new lease, an attempt row; the first grant seals the period and stores
 * the slice plan. Two transactions: *revoke* ends the lease of a lower pass of the same execution by a plain update, which
 * waits for no slice; then the grant takes the row `for update`, which waits for the slices in flight, at most
 * `claimLockTimeout` (throws OnceperError `lock_timeout`: claim again). Asked twice by one pass it gives its grant back. A
 * lower pass that gets in between the two is superseded too, so a zombie's claim delays its successors by one round each.
 */
export async function claimAttempt(db: Database, request: ClaimRequest, hooks: ClaimHooks): Promise<Claim> {
  for (;;) {
    const claimed = await tryClaim(db, request, hooks);
    if (claimed.kind !== 'overtaken') return claimed;
  }
}

async function tryClaim(db: Database, request: ClaimRequest, hooks: ClaimHooks): Promise<Claim | typeof OVERTAKEN> {
  const action = await actionByKey(db, request.key);
  const closed =
    action === null ? refusal('no_action', 'no run was admitted for this key') : foreclosed(action, request);
  if (closed !== null) return closed;
  const granted = await storedGrant(db, request);
  if (granted !== null) return granted;
  await revoke(db, request);
  try {
    return await boundedGrant(db, request, hooks);
  } catch (error) {
    return afterFailedGrant(db, request, error);
  }
}

/** The grant's transaction; a former holder's transactions hold it up for `transactionTimeout` at most, on any server. */
function boundedGrant(db: Database, request: ClaimRequest, hooks: ClaimHooks): Promise<Claim> {
  const { claimLockTimeout, transactionTimeout } = request.times;
  let backend: number | null = null;
  return boundedWait(db, { pid: () => backend, graceMs: transactionTimeout }, () =>
    transaction(db, { lockTimeout: claimLockTimeout, label: 'claim' }, async (tx) => {
      backend = await backendOf(tx);
      return grant(tx, request, hooks);
    }),
  );
}

async function grant(tx: Tx, request: ClaimRequest, hooks: ClaimHooks): Promise<Claim> {
  const peeked = await actionByKey(tx, request.key);
  if (peeked !== null && peeked.sealedAt === null) await hooks.seal(tx, peeked.fence + 1n);
  const locked = await lockForGrant(tx, request);
  const fence = locked.fence + 1n;
  // Judged under the lock: while we waited for the seal, another claim may have sealed, planned, and ended.
  const first = !locked.sealed;
  await endLeftOpen(tx, request.key, request.execution);
  // Statements of their own: a plan in the seal's statement has the snapshot from before the wait and misses rows.
  if (first) await storePlan(tx, request.key, await hooks.plan(tx, fence));
  await writeGrant(tx, request, fence, first);
  const attempt = await beginAttempt(tx, { ...request, fence });
  const slices = await unfinishedSlices(tx, request.key);
  await appendGrant(tx, request, { fence, attempt, ...(first ? { sealed: { slices: slices.length } } : {}) });
  return { kind: 'granted', fence, attempt, slices };
}

/** Locks the action for a grant; where another has it, GrantLost rolls the seal back. */
async function lockForGrant(tx: Tx, request: ClaimRequest): Promise<{ fence: bigint; sealed: boolean }> {
  const { rows } = await tx.query<{ fence: bigint; sealed: boolean }>(
    `select fence, sealed_at is not null as sealed from onceper.action
      where key = $1 and owner_run = $2 and state in ('admitted', 'running', 'failed')
        and (state <> 'running' or lease_until <= clock_timestamp())
        and (owner_exec is distinct from $3 or owner_pass < $4)
        for update`,
    [request.key, request.run, request.execution, request.pass],
  );
  const [row] = rows;
  if (row === undefined) throw new GrantLost();
  return row;
}

async function writeGrant(tx: Tx, request: ClaimRequest, fence: bigint, sealed: boolean): Promise<void> {
  const { rowCount } = await tx.query(
    `update onceper.action
        set state = 'running', fence = $2, owner_exec = $3, owner_pass = $4, release = $5,
            lease_until = clock_timestamp() + $6 * interval '1 millisecond',
            sealed_at = case when $7 then clock_timestamp() else sealed_at end
      where key = $1 and fence = $2 - 1`,
    [request.key, fence, request.execution, request.pass, request.release, request.times.lease, sealed],
  );
  if (rowCount !== 1) throw new GrantLost();
}

/**
 * Ends the lease of a lower pass of the same execution, alive or not: that pass may be a zombie. In one transaction with the
 * grant the zombie's key share locks would overtake the waiting `for update` for ever (measured: 135 slices in 3 s).
 */
async function revoke(tx: Tx, request: ClaimRequest): Promise<void> {
  await tx.query(
    `update onceper.action set lease_until = clock_timestamp()
      where key = $1 and owner_run = $2 and owner_exec = $3 and owner_pass < $4
        and state = 'running' and lease_until > clock_timestamp()`,
    [request.key, request.run, request.execution, request.pass],
  );
}

/** What needs no grant: the key is finished, stopped, another run's, or already at a later pass of this execution. */
function foreclosed(action: Action, request: ClaimRequest): Claim | null {
  switch (action.state) {
    case 'done':
    case 'compensating':
    case 'compensated':
      return { kind: 'done', result: action.result };
    case 'exhausted':
    case 'cancelled':
    case 'skipped':
      return refusal(action.state, `the key is ${action.state}`);
    case 'admitted':
    case 'running':
    case 'failed':
      break;
  }
  if (action.ownerRun !== request.run) return refusal('not_owner', `run ${action.ownerRun} owns the key`);
  if (action.ownerExec === request.execution && (action.ownerPass ?? 0) > request.pass) {
    return { kind: 'superseded', pass: action.ownerPass ?? 0 };
  }
  return null;
}

/** The grant that this pass was given before, if it still holds; one that ended sends the execution on to its next pass. */
async function storedGrant(db: Database, request: ClaimRequest): Promise<Claim | null> {
  const attempt = await attemptOfPass(db, request);
  if (attempt === null) return null;
  if (attempt.outcome !== null) return { kind: 'superseded', pass: request.pass };
  return {
    kind: 'granted',
    fence: attempt.fence,
    attempt: attempt.number,
    slices: await unfinishedSlices(db, request.key),
  };
}

async function afterFailedGrant(
  db: Database,
  request: ClaimRequest,
  error: unknown,
): Promise<Claim | typeof OVERTAKEN> {
  if (!(error instanceof GrantLost || error instanceof OnceperError)) throw error;
  const action = await actionByKey(db, request.key);
  if (action === null) throw error;
  const closed = foreclosed(action, request) ?? (await storedGrant(db, request));
  if (closed !== null) return closed;
  if (action.state === 'running' && action.leaseLeftMs > 0) {
    if (action.ownerExec === request.execution && (action.ownerPass ?? 0) < request.pass) return OVERTAKEN;
    return { kind: 'busy', until: action.leaseUntil, waitMs: action.leaseLeftMs };
  }
  if (error instanceof GrantLost) return { kind: 'busy', until: action.leaseUntil, waitMs: 0 };
  // Only a seal is refused: where the period was sealed meanwhile, the error is of this race, and the next pass is wiser.
  if (action.sealedAt !== null || !isJobRefusal(error)) throw error;
  try {
    return await recordRefusedSeal(db, request, error);
  } catch (lost) {
    if (lost instanceof GrantLost) return OVERTAKEN;
    throw lost;
  }
}

/** Faults of the database belong to the pass, which tries again; every other code is the job's own word about its period. */
const isJobRefusal = (error: OnceperError) => !FAULTS_OF_THE_DATABASE.has(error.code);

/** The seal was rolled back, so this grant seals nothing: it only counts the attempt, with the job's code. */
async function recordRefusedSeal(db: Database, request: ClaimRequest, refused: OnceperError): Promise<Claim> {
  return transaction(db, { lockTimeout: request.times.claimLockTimeout, label: 'claim' }, async (tx) => {
    const fence = (await lockForGrant(tx, request)).fence + 1n;
    await endLeftOpen(tx, request.key, request.execution);
    await writeGrant(tx, request, fence, false);
    const attempt = await beginAttempt(tx, { ...request, fence });
    const end = { key: request.key, fence, code: refused.code, detail: refused.message, slicesBegun: 0 };
    const next = await endGrant(tx, { ...end, outcome: 'failed', budget: request.budget });
    if (next === null) throw new GrantLost();
    await appendGrant(tx, request, { fence, attempt, refused: refused.code });
    return { kind: 'failed', code: refused.code, next };
  });
}

/** How a granted attempt ended without closing, and the budget that judges it. */
export interface GrantEnd {
  readonly key: string;
  readonly fence: bigint;
  readonly outcome: 'failed' | 'worker_lost' | 'shutdown' | 'lease_lost';
  readonly code: string | null;
  readonly detail: string | null;
  readonly slicesBegun: number;
  readonly budget: number;
}

/**
 * Ends an attempt that did not close, and with it its lease: the action is `failed` and its owner goes on, or `exhausted` and
 * it stops. Null where the fence has moved on: a later grant has already ended this attempt. Taken `for update`, so that it
 * waits for the slices in flight: one that committed later would count for nothing, or belong to a period that was skipped.
 */
async function endGrant(tx: Tx, end: GrantEnd): Promise<AfterAttempt | null> {
  const { rows } = await tx.query<{ budgetFrom: bigint }>(
    `select budget_from as "budgetFrom" from onceper.action
      where key = $1 and fence = $2 and state = 'running' for update`,
    [end.key, end.fence],
  );
  const [action] = rows;
  if (action === undefined) return null;
  await endAttempt(tx, end);
  const next = judgeBudget(await endedSince(tx, end.key, action.budgetFrom), end.budget);
  const state = next.kind === 'exhausted' ? 'exhausted' : 'failed';
  await tx.query(
    `update onceper.action set state = $3, lease_until = clock_timestamp()
      where key = $1 and fence = $2 and state = 'running'`,
    [end.key, end.fence, state],
  );
  return next;
}

/**
 * Ends a granted attempt; asked twice it finds the attempt ended and answers null. The lease goes first, in a transaction of
 * its own, or a zombie that begins slice after slice would hold the end off. Throws OnceperError `lock_timeout`: end again.
 */
export async function endAttemptOf(db: Database, end: GrantEnd): Promise<AfterAttempt | null> {
  await db.query(
    `update onceper.action set lease_until = clock_timestamp()
      where key = $1 and fence = $2 and state = 'running' and lease_until > clock_timestamp()`,
    [end.key, end.fence],
  );
  return transaction(db, { lockTimeout: 10_000, label: 'end' }, (tx) => endGrant(tx, end));
}

function refusal(code: string, reason: string): Claim {
  return { kind: 'refused', code, reason };
}
