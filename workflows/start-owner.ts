import { ParentClosePolicy, patched, startChild, WorkflowIdReusePolicy } from '@temporalio/workflow';
import { judgeRefusedStart } from './options.ts';
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

/** Since this patch an owner goes on that Temporal has completed for a ledger which is gone. */
const GOES_ON_REWOUND = 'owner-goes-on-rewound';

/**
 * Starts the owner's period workflow under the key as its ID, abandoned, so that it outlives its starter. A running or a
 * completed one refuses by itself, which is Temporal's part of once; the ledger's refusal is the one that counts. Where the ledger
 * says unfinished and Temporal has completed it, the database was rewound: delivery is frozen, and the owner runs again.
 */
export async function startOwner(owner: Owner): Promise<'started' | 'already_started'> {
  if (await begin(owner, WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY)) return 'started';
  if (!patched(GOES_ON_REWOUND)) return 'already_started';
  if ((await judgeRefusedStart({ key: owner.key, run: owner.run })) === 'benign') return 'already_started';
  return (await begin(owner, WorkflowIdReusePolicy.ALLOW_DUPLICATE)) ? 'started' : 'already_started';
}

async function begin(owner: Owner, workflowIdReusePolicy: WorkflowIdReusePolicy): Promise<boolean> {
  const { job, key, run } = owner;
  const started = await unlessStarted(() =>
    startChild<typeof period>('period', {
      workflowId: key,
      args: [{ run }],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      workflowIdReusePolicy,
      staticSummary: `${key}, run ${run}`,
      typedSearchAttributes: periodAttributes(job, owner.period, 'admitted'),
    }),
  );
  return started !== null;
}
