import { expected } from './options.ts';
import { startOwner } from './start-owner.ts';
import { startWatcher } from './start-watcher.ts';

/** What a check of the expected periods found, counted. */
interface ExpectOutput {
  readonly overdue: number;
  readonly redriven: number;
}

/**
 * Checks every expected period of every job against the ledger, and starts the owner of each that is unfinished: an owner
 * that was lost with Temporal's memory, or whose workflow failed, goes on, and so does the watcher of a key that delivers. "Already started" is success.
 */
export async function expect(): Promise<ExpectOutput> {
  const { overdue, owners, delivering } = await expected();
  for (const owner of owners) await startOwner(owner);
  for (const key of delivering) await startWatcher(key);
  return { overdue, redriven: owners.length };
}
