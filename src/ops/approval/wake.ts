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
      return null;
  }
}

/** Starts the dispatcher of a backfill, or wakes it where it runs. Returns its workflow's id. */
export async function wakeBackfill(client: Client, id: string, taskQueue: string): Promise<string> {
  const workflowId = `backfill-${id}`;
  await client.workflow.signalWithStart('backfill', { taskQueue, workflowId, args: [{ id }], signal: 'wake' });
  return workflowId;
}
