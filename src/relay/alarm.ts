/** A nap that can be cut short. A ring while nobody naps ends the next nap at once, so none is missed. */
export interface Alarm {
  ring(): void;
  /** Resolves after `ms`, at a ring (true), or when `signal` aborts. */
  nap(ms: number, signal: AbortSignal): Promise<boolean>;
}

export function createAlarm(): Alarm {
  let isRung = false;
  let wake: () => void = () => undefined;
  return {
    ring() {
      isRung = true;
      wake();
    },
    async nap(ms, signal) {
      await new Promise<void>((resolve) => {
        if (isRung || signal.aborted) return resolve();
        const end = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', end);
          resolve();
        };
        const timer = setTimeout(end, ms);
        wake = end;
        signal.addEventListener('abort', end, { once: true });
      });
      const wasRung = isRung;
      isRung = false;
      return wasRung;
    },
  };
}
