import { ParentClosePolicy, startChild, WorkflowIdReusePolicy } from '@temporalio/workflow';
import { parseKey } from '../src/kernel/key.ts';
import type { delivery } from './delivery.ts';
import { periodAttributes } from './search-attributes.ts';
import { unlessStarted } from './unless-started.ts';

/**
 * Starts the watcher of a done key's effects, abandoned. One that runs refuses another; one that has completed may be
 * followed by another, since effects can be added to a done key. It decides nothing: the relay delivers without it.
 */
export async function startWatcher(key: string): Promise<void> {
  const { job, period } = parseKey(key);
  await unlessStarted(() =>
    startChild<typeof delivery>('delivery', {
      workflowId: `delivery:${key}`,
      args: [{ key }],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
      staticSummary: `the effects of ${key}`,
      typedSearchAttributes: periodAttributes(job, period, 'delivering'),
    }),
  );
}
