/** Effects in hand that share a limit: so many at a time, the others in the order in which they came. */
export interface Lane<T> {
  add(items: readonly T[]): void;
  /** How many have not begun. */
  waiting(): number;
  inFlight(): number;
  /** Takes out what has not begun. */
  clear(): T[];
}

/** Starts a lane; `work` does not reject, and `onIdle` is called whenever one of its runners has nothing left to do. */
export function createLane<T>(concurrency: number, work: (item: T) => Promise<void>, onIdle: () => void): Lane<T> {
  const queue: T[] = [];
  let inFlight = 0;

  async function runner(): Promise<void> {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next);
    inFlight -= 1;
    onIdle();
  }

  return {
    add(items) {
      queue.push(...items);
      while (inFlight < concurrency && queue.length > 0) {
        inFlight += 1;
        void runner();
      }
    },
    waiting: () => queue.length,
    inFlight: () => inFlight,
    clear: () => queue.splice(0),
  };
}
