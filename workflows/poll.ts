import { condition, defineSignal, setHandler } from '@temporalio/workflow';

/** Asks for a look at once. It only wakes: what is true stands in the ledger, so that no signal can be lost or count twice. */
const wakeSignal = defineSignal('wake');

/** Waits between looks, longer each time, until it is woken; milliseconds. */
export interface Poll {
  /** How long the next wait is, for a workflow that continues as new. */
  waitMs(): number;
  wake(): void;
  /** Before a look: whoever wakes us during it has changed something that the look may not have seen. */
  begin(): void;
  isWoken(): boolean;
  /** The next wait is the shortest. */
  shorten(): void;
  nap(): Promise<void>;
}

/** Starts a poll and listens for the signal `wake`; once a workflow. */
export function createPoll(
  given: number | undefined,
  { first, cap }: { readonly first: number; readonly cap: number },
): Poll {
  let waitMs = given ?? first;
  let isWoken = false;
  const wake = () => {
    isWoken = true;
  };
  setHandler(wakeSignal, wake);
  return {
    waitMs: () => waitMs,
    wake,
    begin() {
      isWoken = false;
    },
    isWoken: () => isWoken,
    shorten() {
      waitMs = first;
    },
    async nap() {
      const woken = await condition(() => isWoken, waitMs);
      waitMs = woken ? first : Math.min(cap, waitMs * 2);
    },
  };
}
