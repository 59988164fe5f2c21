import { advanceBackfill, type BackfillStart } from '../src/store/backfill-advance.ts';
import type { ActivityServices } from './services.ts';

/** What a dispatcher must do now: start these runs, then look again; or end. */
export interface BackfillOutput {
  readonly job: string;
  readonly actor: string;
  readonly starts: readonly BackfillStart[];
  /** How many periods came to their end since the last look, are under way, and wait for room. */
  readonly ended: number;
  readonly active: number;
  readonly waiting: number;
  readonly isOver: boolean;
  readonly isCancelled: boolean;
}

/** Takes a backfill one step on (store/backfill-advance.ts has the guarantees); executed twice it only looks twice. */
export async function advance(services: ActivityServices, id: string): Promise<BackfillOutput> {
  const { backfill, starts, ended, active, waiting, isOver } = await advanceBackfill(services.db, id);
  const { job, actor, cancelledAt } = backfill;
  for (const { run, key } of starts) services.log({ event: 'backfill_started', job, key, run, backfill: id });
  if (isOver) services.log({ event: 'backfill_ended', job, backfill: id, cancelled: cancelledAt !== null });
  return { job, actor, starts, ended, active, waiting, isOver, isCancelled: cancelledAt !== null };
}
