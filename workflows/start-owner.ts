import { ParentClosePolicy, startChild, WorkflowIdReusePolicy } from '@temporalio/workflow';
import type { period } from './period.ts';
import { periodAttributes } from './search-attributes.ts';
import { unlessStarted } from './unless-started.ts';

/** A key and the run that owns it. */
export interface Owner {
  readonly job: string;
  readonly period: string;
  readonly key: string;
  readonly run: string;
}

/**
 * Starts the owner's period workflow under the key as its ID, abandoned, so that it outlives its starter. A running or a
 * completed one refuses by itself, which is Temporal's part of once; the ledger's refusal is the one that counts.
 */
export async function startOwner(owner: Owner): Promise<'started' | 'already_started'> {
  const { job, key, run } = owner;
  const started = await unlessStarted(() =>
    startChild<typeof period>('period', {
      workflowId: key,
      args: [{ run }],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
      staticSummary: `${key}, run ${run}`,
      typedSearchAttributes: periodAttributes(job, owner.period, 'admitted'),
    }),
  );
  return started === null ? 'already_started' : 'started';
}
