import { codeOf } from '../kernel/error.ts';
import { actionByKey } from '../store/actions.ts';
import type { Stage } from './stage.ts';
import { until } from './until.ts';

const STOPPED: ReadonlySet<string> = new Set(['done', 'exhausted', 'cancelled', 'skipped']);

/** Waits until a key is done, or stopped without being done, and returns the state. */
export async function keyEnd(stage: Stage, key: string, timeoutMs = 60_000): Promise<string> {
  return until(
    `the end of ${key}`,
    async () => {
      const state = (await actionByKey(stage.db, key))?.state ?? '';
      return STOPPED.has(state) ? state : null;
    },
    timeoutMs,
  );
}

/** Waits until a key is done, at most so long; the seconds that it took, or null where it was not done by then. */
export async function secondsUntilDone(stage: Stage, key: string, timeoutMs: number): Promise<number | null> {
  const began = performance.now();
  try {
    await until(`${key} to be done`, async () => (await actionByKey(stage.db, key))?.state === 'done', timeoutMs);
    return (performance.now() - began) / 1_000;
  } catch (error) {
    if (codeOf(error) === 'waited_in_vain') return null;
    throw error;
  }
}

/** Waits until the relay has nothing left to do for a key. */
export async function delivered(stage: Stage, key: string, timeoutMs = 60_000): Promise<void> {
  await until(
    `every payout of ${key}`,
    async () => {
      const action = await actionByKey(stage.db, key);
      return action?.state === 'done' && !action.delivering;
    },
    timeoutMs,
  );
}

/** How many effects of a key are in each state, as `succeeded 12, needs_attention 3`, in the order of their names. */
export async function effectStates(stage: Stage, key: string): Promise<string> {
  const { rows } = await stage.db.query<{ text: string | null }>(
    `select string_agg(state || ' ' || n, ', ' order by state) as text
       from (select state, count(*) as n from onceper.outbox where key = $1 group by state) s`,
    [key],
  );
  return rows[0]?.text ?? 'none';
}
