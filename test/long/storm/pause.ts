import { waitFor } from '../../support/wait.ts';

/** Lets so many milliseconds pass: how long a fault lasts is part of the fault, and no condition ends it. */
export async function pause(ms: number): Promise<void> {
  const end = performance.now() + ms;
  await waitFor(() => performance.now() >= end, {
    what: 'an instant',
    timeoutMs: ms + 60_000,
    everyMs: Math.max(1, Math.min(ms, 25)),
  });
}
