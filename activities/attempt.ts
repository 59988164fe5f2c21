import type { Job, JobContext } from '../src/jobs/job.ts';
import type { AfterAttempt } from '../src/kernel/budget.ts';
import type { EffectSelect } from '../src/kernel/effect-select.ts';
import { parseKey } from '../src/kernel/key.ts';
import { leaseTimes } from '../src/kernel/lease.ts';
import { periodBounds } from '../src/kernel/period.ts';
import type { Instant } from '../src/kernel/sql.ts';
import { auditHead } from '../src/store/audit.ts';
import { claimAttempt, endAttemptOf, type GrantEnd } from '../src/store/claim.ts';
import { closeAction, renewLease } from '../src/store/close.ts';
import { runByStartId } from '../src/store/runs.ts';
import type { Grant } from '../src/store/slices.ts';
import { contextOf } from './job-context.ts';
import type { ActivityServices } from './services.ts';

/** A pass of a period workflow: which run, which execution of it, which pass. */
export interface ClaimInput {
  readonly run: string;
  readonly execution: string;
  readonly pass: number;
}

/** Fences cross Temporal as decimal text, slices as numbers: ids only. */
export type ClaimOutput =
  | {
      readonly kind: 'granted';
      readonly job: string;
      readonly key: string;
      readonly period: string;
      readonly fence: string;
      readonly attempt: number;
      readonly slices: readonly number[];
      readonly inFlight: number;
    }
  | { readonly kind: 'busy'; readonly key: string; readonly until: Instant; readonly waitMs: number }
  | { readonly kind: 'done'; readonly key: string; readonly result: unknown }
  | { readonly kind: 'superseded'; readonly key: string; readonly pass: number }
  | { readonly kind: 'failed'; readonly key: string; readonly code: string; readonly next: AfterAttempt }
  | { readonly kind: 'refused'; readonly code: string; readonly reason: string };

/** Claims the run's next attempt (store/claim.ts has the guarantees). A run that was never admitted is refused. */
export async function claim(services: ActivityServices, input: ClaimInput): Promise<ClaimOutput> {
  const { db, registry, release, log } = services;
  const run = await runByStartId(db, input.run);
  if (run === null) return { kind: 'refused', code: 'unknown_run', reason: `no run is called ${input.run}` };
  if (run.decision !== 'admitted' || run.key === null) {
    return { kind: 'refused', code: 'not_admitted', reason: `run ${input.run} was decided ${run.decision}` };
  }
  const { key } = run;
  const { job, action, contextUnder } = await contextOf(db, registry, key);
  const { rule } = contextUnder(action.fence);
  const times = leaseTimes(rule.leaseSeconds * 1000);
  const request = { ...input, key, release, budget: rule.budget, times };
  const claimed = await claimAttempt(db, request, {
    seal: (tx, fence) => job.seal(tx, contextUnder(fence)),
    plan: (tx, fence) => job.plan(tx, contextUnder(fence)),
  });
  switch (claimed.kind) {
    case 'granted': {
      const { fence, attempt, slices } = claimed;
      log({ event: 'attempt_granted', job: job.id, key, run: input.run, attempt, fence, slices: slices.length });
      const at = { job: job.id, key, period: action.period, attempt, inFlight: rule.slicesInFlight };
      return { kind: 'granted', ...at, fence: fence.toString(), slices };
    }
    case 'busy':
      log({ event: 'attempt_busy', job: job.id, key, run: input.run, until: claimed.until });
      return { ...claimed, key };
    case 'failed':
      log({
        event: 'attempt_ended',
        job: job.id,
        key,
        run: input.run,
        outcome: 'failed',
        code: claimed.code,
        next: claimed.next.kind,
      });
      return { ...claimed, key };
    case 'done':
    case 'superseded':
      return { ...claimed, key };
    case 'refused':
      return claimed;
  }
}

export interface GrantInput {
  readonly key: string;
  readonly fence: string;
}

export type CloseOutput =
  | { readonly kind: 'done'; readonly result: unknown }
  | { readonly kind: 'slices_left'; readonly left: number }
  | { readonly kind: 'lease_lost' };

/** Closes the key under its grant (store/close.ts has the guarantees); executed twice it gives the stored result. */
export async function close(services: ActivityServices, input: GrantInput): Promise<CloseOutput> {
  const { db, registry, log } = services;
  const { job, contextUnder } = await contextOf(db, registry, input.key);
  const context = contextUnder(BigInt(input.fence));
  const grant = grantOf(input, context.rule.leaseSeconds);
  const began = performance.now();
  // A whole lease for the closing transaction: the last slice's renewer has stopped, and it must not run during close.
  await renewLease(db, grant);
  const closed = await closeAction(db, grant, (tx, results) => job.close(tx, context, results), {
    periodEnds: periodBounds(context.period, context.calendar).ends,
    notices: noticesOf(services, job, context),
  });
  const about = { job: job.id, key: input.key, fence: input.fence };
  if (closed.kind === 'done') {
    log({ event: 'action_done', ...about, ms: Math.round(performance.now() - began) });
    services.anchor(await auditHead(db));
    // A database that is rewound across this close must be recognised by it.
    await services.askForLook();
  }
  if (closed.kind === 'lease_lost') log({ event: 'lease_lost', ...about, step: 'close' });
  return closed;
}

/** What is told of the key, where there is anybody to tell. An adjustment delivers nothing. */
function noticesOf({ audience }: ActivityServices, job: Job, context: JobContext): EffectSelect | null {
  if (audience === undefined || audience.receivers.length === 0 || parseKey(context.key).adj !== null) return null;
  return job.completed?.(context, audience) ?? null;
}

export interface EndInput extends GrantInput {
  readonly outcome: GrantEnd['outcome'];
  readonly code: string | null;
  readonly detail: string | null;
  readonly slicesBegun: number;
}

export type EndOutput = AfterAttempt | { readonly kind: 'moved_on' };

/** Records how an attempt ended and what its budget says; executed twice, the second finds that the ledger moved on. */
export async function endAttempt(services: ActivityServices, input: EndInput): Promise<EndOutput> {
  const { db, registry, log } = services;
  const { job, action, contextUnder } = await contextOf(db, registry, input.key);
  const { rule } = contextUnder(action.fence);
  const next = await endAttemptOf(db, { ...input, fence: BigInt(input.fence), budget: rule.budget });
  if (next === null) return { kind: 'moved_on' };
  const { outcome, code, key, fence } = input;
  log({ event: 'attempt_ended', job: job.id, key, fence, run: action.ownerRun, outcome, code, next: next.kind });
  return next;
}

/** The grant of an input, with the times of its rule's lease. */
export function grantOf(input: GrantInput, leaseSeconds: number): Grant {
  return { key: input.key, fence: BigInt(input.fence), times: leaseTimes(leaseSeconds * 1000) };
}
