import { setTimeout as delay } from 'node:timers/promises';

/**
 * Asks again and again until `condition` answers something truthy, and returns that; a condition that throws has not
 * answered yet. After `timeoutMs` it rejects, naming `what` was waited for and the last thing thrown. The one place of the
 * tests that lets time pass: everything else waits for a condition through it.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  options: { readonly what: string; readonly timeoutMs?: number; readonly everyMs?: number },
): Promise<NonNullable<T>> {
  const timeoutMs = options.timeoutMs ?? 20_000;
  const until = performance.now() + timeoutMs;
  let thrown: unknown;
  for (;;) {
    try {
      const answer = await condition();
      if (answer) return answer;
      thrown = undefined;
    } catch (error) {
      thrown = error;
    }
    if (performance.now() >= until) {
      throw new Error(`waited ${timeoutMs} ms for ${options.what}`, thrown === undefined ? {} : { cause: thrown });
    }
    await delay(options.everyMs ?? 25);
  }
}
