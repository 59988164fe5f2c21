import { setTimeout as delay } from 'node:timers/promises';
import { OnceperError } from '../../kernel/error.ts';

/** Asks every 50 ms until the answer is truthy, and returns it. Throws OnceperError `demo_waited` after `timeoutMs`. */
export async function until<T>(
  what: string,
  ask: () => Promise<T>,
  timeoutMs: number,
): Promise<Exclude<T, null | undefined | false>> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false)
      return answer as Exclude<T, null | undefined | false>;
    if (performance.now() > end) {
      throw new OnceperError({
        code: 'demo_waited',
        message: `waited ${Math.round(timeoutMs / 1000)} s for ${what}`,
        remedy: 'read the logs under .onceper/demo/logs',
      });
    }
    await delay(50);
  }
}
