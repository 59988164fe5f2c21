import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { performSlice, type SliceOutcome } from '../src/store/slices.ts';
import { type GrantInput, grantOf } from './attempt.ts';
import { contextOf } from './job-context.ts';
import type { Renewer } from './renewer.ts';
import type { ActivityServices } from './services.ts';

/** Some slices of one grant, performed one after the other. */
export interface PerformInput extends GrantInput {
  readonly slices: readonly number[];
}

export type PerformOutput =
  | { readonly kind: 'performed' }
  | { readonly kind: 'lease_lost'; readonly begun: number }
  | { readonly kind: 'draining'; readonly begun: number };

/**
 * Performs the slices under the grant (store/slices.ts has the guarantees), the lease renewed meanwhile. It stops before a
 * slice, never inside one, when the lease is lost or the worker drains; finished slices stay.
 */
export async function perform(
  services: ActivityServices,
  renewer: Renewer,
  input: PerformInput,
): Promise<PerformOutput> {
  const { db, registry, log } = services;
  const { job, contextUnder } = await contextOf(db, registry, input.key);
  const context = contextUnder(BigInt(input.fence));
  const grant = grantOf(input, context.rule.leaseSeconds);
  const { cancellationSignal } = Context.current();
  const about = { job: job.id, key: input.key, fence: input.fence };
  const started = performance.now();
  const renewal = renewer.hold(grant);
  let begun = 0;
  try {
    for (const slice of input.slices) {
      if (services.draining.aborted) return { kind: 'draining', begun };
      if (cancellationSignal.aborted) throw ApplicationFailure.nonRetryable('the activity was cancelled', 'cancelled');
      const outcome: SliceOutcome = renewal.lost.aborted
        ? { kind: 'lease_lost' }
        : await performSlice(db, grant, slice, (tx, range) => job.perform(tx, context, range));
      if (outcome.kind === 'lease_lost') {
        log({ event: 'lease_lost', ...about, step: 'slice' });
        return { kind: 'lease_lost', begun };
      }
      begun += 1;
    }
  } finally {
    renewal.release();
  }
  log({ event: 'slices_performed', ...about, slices: begun, ms: Math.round(performance.now() - started) });
  return { kind: 'performed' };
}
