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
    case 'owner':
      return null;
  }
}
