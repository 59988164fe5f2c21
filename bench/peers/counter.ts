/** Waits for the ends of work that was handed to a queue. */
export interface Counter {
  /** Begins to count up to `items`; the promise resolves there, and rejects when the work of one failed. */
  expect(items: number): Promise<void>;
  ended(): void;
  failed(error: unknown): void;
}

/** Counts ends as a queue's events tell them. Before `expect` and after its end nothing is counted. */
export function createCounter(): Counter {
  let left = 0;
  let done: () => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  return {
    expect(items) {
      left = items;
      return new Promise((resolve, reject) => {
        done = resolve;
        fail = reject;
      });
    },
    ended() {
      left -= 1;
      if (left === 0) done();
    },
    failed(error) {
      // Between rounds nobody waits; the peer's log has it all the same.
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      fail(error instanceof Error ? error : new Error(String(error)));
    },
  };
}
