import { isCancellation } from '@temporalio/workflow';
import type { PerformOutput } from '../activities/perform.ts';
import { perform } from './options.ts';
import { endOf, type PassEnd } from './pass-end.ts';

/** At most so many activities a pass, so that the history of a million merchants stays under 2,000 events. */
const MAX_ACTIVITIES = 160;

interface Work {
  readonly key: string;
  readonly fence: string;
  readonly slices: readonly number[];
  readonly inFlight: number;
}

/**
 * Performs the slices, `inFlight` activities at a time. Null when all are done. The first end that is not success stops
 * further activities; those in flight are awaited, so that what they finish counts and nothing runs beside the next attempt.
 */
export async function performAll(work: Work): Promise<PassEnd | null> {
  const batches = batchesOf(work.slices);
  const ends: PassEnd[] = [];
  let next = 0;
  const lane = async () => {
    while (ends.length === 0 && next < batches.length) {
      const slices = batches[next] ?? [];
      next += 1;
      const end = await performBatch(work, slices);
      if (end !== null) ends.push(end);
    }
  };
  await Promise.all(Array.from({ length: Math.min(work.inFlight, batches.length) }, lane));
  return ends[0] ?? null;
}

async function performBatch(work: Work, slices: readonly number[]): Promise<PassEnd | null> {
  try {
    return endOfOutput(await perform({ key: work.key, fence: work.fence, slices }));
  } catch (error) {
    if (isCancellation(error)) throw error;
    return endOf(error);
  }
}

function endOfOutput(output: PerformOutput): PassEnd | null {
  switch (output.kind) {
    case 'performed':
      return null;
    case 'lease_lost':
      return { outcome: 'lease_lost', code: null, detail: null, slicesBegun: output.begun, permanent: false };
    case 'draining':
      return { outcome: 'shutdown', code: null, detail: null, slicesBegun: output.begun, permanent: false };
  }
}

/** Neighbouring slices go together, in key order. */
function batchesOf(slices: readonly number[]): number[][] {
  const size = Math.max(1, Math.ceil(slices.length / MAX_ACTIVITIES));
  const batches: number[][] = [];
  for (let at = 0; at < slices.length; at += size) batches.push(slices.slice(at, at + size));
  return batches;
}
