import { setTimeout as delay } from 'node:timers/promises';
import { OnceperError } from '../kernel/error.ts';

/** Asks every 50 ms, or as told, until the answer is truthy, and returns it. Throws OnceperError `waited_in_vain`. */
export async function until<T>(
  what: string,
  ask: () => Promise<T>,
  timeoutMs: number,
  everyMs = 50,
): Promise<Exclude<T, null | undefined | false>> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false)
      return answer as Exclude<T, null | undefined | false>;
    if (performance.now() > end) {
      throw new OnceperError({
        code: 'waited_in_vain',
        message: `waited ${Math.round(timeoutMs / 1000)} s for ${what}`,
        remedy: 'read the logs of its processes; for a demo they lie under .onceper/demo/logs',
      });
    }
    await delay(everyMs);
  }
}
