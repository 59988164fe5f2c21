/** Wakes whoever waits for a condition over state that only this process changes; no polling, no time. */
export interface Bell {
  /** Something changed: every waiting condition is asked again. */
  ring(): void;
  when(condition: () => boolean): Promise<void>;
}

export function createBell(): Bell {
  let listeners: (() => void)[] = [];
  return {
    ring() {
      const woken = listeners;
      listeners = [];
      for (const wake of woken) wake();
    },
    async when(condition) {
      while (!condition()) await new Promise<void>((resolve) => listeners.push(resolve));
    },
  };
}
