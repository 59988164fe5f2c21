import { expected } from './options.ts';
import { startOwner } from './start-owner.ts';
import { startDispatcher, startMissingTick, startTickAgain } from './start-tick.ts';
import { startWatcher } from './start-watcher.ts';

/** What a check of the expected periods found, counted. */
interface ExpectOutput {
  readonly overdue: number;
  readonly redriven: number;
}

/**
 * Checks every expected period of every job against the ledger, and starts the owner of each that is unfinished: an owner
 * that was lost with Temporal's memory, or whose workflow failed, goes on, and so does the watcher of a key that
 * delivers, a run that was approved, a deferred one that nobody asks for, a backfill. It starts the periods that came due and that
 * nothing has started: a period is closed because it ended, not because something fired. "Already started" is success.
 */
export async function expect(): Promise<ExpectOutput> {
  const { overdue, owners, delivering, approved, backfills, deferred = [], missing = [] } = await expected();
  for (const owner of owners) await startOwner(owner);
  for (const key of delivering) await startWatcher(key);
  for (const run of [...approved, ...deferred]) await startTickAgain(run);
  for (const id of backfills) await startDispatcher(id);
  for (const period of missing) await startMissingTick(period);
  return { overdue, redriven: owners.length };
}
