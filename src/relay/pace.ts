import { setTimeout as delay } from 'node:timers/promises';

/** Spaces calls to a counterparty that takes only so many a second. */
export interface Pace {
  /**
   * Resolves true when a call may begin, or false at once where its turn would come after `until` on the process's steady
   * clock, or `signal` aborts first: then no turn was used.
   */
  turn(until: number, signal: AbortSignal): Promise<boolean>;
}

/** Evenly spaced, without bursts: a limit counted over any window, however the counterparty cuts it, holds. Null is no limit. */
export function createPace(perSecond: number | null): Pace {
  if (perSecond === null) return { turn: () => Promise.resolve(true) };
  const gapMs = 1_000 / perSecond;
  let next = 0;
  return {
    async turn(until, signal) {
      const now = performance.now();
      const at = Math.max(now, next);
      if (at > until || signal.aborted) return false;
      next = at + gapMs;
      if (at === now) return true;
      try {
        await delay(at - now, undefined, { signal });
        return true;
      } catch {
        return false;
      }
    },
  };
}
