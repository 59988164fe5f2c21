import type { Client } from '@temporalio/client';
import { startTick } from '../run.ts';
import type { Wake } from './act.ts';

/**
 * Tells Temporal what an execution made possible. Everything it says stands in rows: told twice it is started once, and untold
 * it is found by the check that a worker starts every few minutes. Returns the id of the workflow that goes on, or null.
 */
export async function tellTemporal(
  client: Client,
  wake: Wake,
  by: { readonly actor: string; readonly taskQueue: string },
): Promise<string | null> {
  switch (wake.kind) {
    case 'none':
      return null;
    case 'tick':
      return startTick(client, wake.run, { ...by, door: 'release' });
    case 'backfill':
      return wakeBackfill(client, wake.id, by.taskQueue);
    case 'owner':
      return restartOwner(client, wake, by.taskQueue);
  }
}

/**
 * Starts the owner's workflow anew under its key, ending the execution that holds on to it: that one may wait for a worker that
 * will never answer. What its activities still write is refused by the fence, whatever Temporal thinks of them.
 */
async function restartOwner(
  client: Client,
  { key, run, job, period }: Extract<Wake, { kind: 'owner' }>,
  taskQueue: string,
): Promise<string> {
  const attribute = (name: string, value: string) => ({ key: { name, type: 'KEYWORD' as const }, value });
  await client.workflow.start('period', {
    taskQueue,
    workflowId: key,
    args: [{ run }],
    workflowIdConflictPolicy: 'TERMINATE_EXISTING',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    staticSummary: `${key}, run ${run}, taken over`,
    typedSearchAttributes: [
      attribute('OnceperJob', job),
      attribute('OnceperPeriod', period),
      attribute('OnceperState', 'admitted'),
    ],
  });
  return key;
}

/** Starts the dispatcher of a backfill, or wakes it where it runs. Returns its workflow's id. */
export async function wakeBackfill(client: Client, id: string, taskQueue: string): Promise<string> {
  const workflowId = `backfill-${id}`;
  await client.workflow.signalWithStart('backfill', { taskQueue, workflowId, args: [{ id }], signal: 'wake' });
  return workflowId;
}
