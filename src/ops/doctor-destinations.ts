import type { Database } from '../store/database.ts';
import { countPausedEffects, type DestinationStanding, readDestinations } from '../store/destinations.ts';
import { type Check, fail, ok } from './check.ts';
import { resumeCommand } from './commands.ts';
import { pauseInWords } from './destinations.ts';

/** Destinations that are paused, since when and by which answer. Nothing is lost, and somebody must mend the cause. */
export async function checkDestinations(db: Database): Promise<readonly Check[]> {
  const all = await readDestinations(db);
  const paused = all.filter(({ state }) => state === 'paused');
  if (paused.length === 0)
    return [ok('destinations', `open: ${all.map(({ name }) => name).join(', ') || 'none is known'}`)];
  const waiting = await countPausedEffects(db);
  return paused.map((standing) => pausedRow(standing, waiting));
}

function pausedRow(standing: DestinationStanding, waiting: number): Check {
  const remedy = `mend it with the counterparty; it goes on by itself, or at once: ${resumeCommand(standing.name)}`;
  return fail('destinations', `${pauseInWords(standing)}; ${waiting} effects wait, none is lost`, remedy);
}
