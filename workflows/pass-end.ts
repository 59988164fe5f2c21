import { ActivityFailure, ApplicationFailure, TimeoutFailure } from '@temporalio/common';
import type { EndInput } from '../activities/attempt.ts';

/** How a pass ended without closing. `permanent` means that no further pass could end otherwise. */
export interface PassEnd extends Pick<EndInput, 'outcome' | 'code' | 'detail' | 'slicesBegun'> {
  readonly permanent: boolean;
}

/**
 * Reads how an activity ended. A heartbeat that stopped means that its worker is lost, though it may still be working: the
 * fence, not this reading, keeps it from writing. The SDK reports a worker's shutdown by the type `WorkerShutdown`.
 */
export function endOf(error: unknown): PassEnd {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof TimeoutFailure) {
    if (cause.timeoutType === 'HEARTBEAT') return ended('worker_lost', null, 'the worker stopped its heartbeats');
    return ended('failed', 'timeout', `${cause.timeoutType} time-out`);
  }
  if (cause instanceof ApplicationFailure) {
    if (cause.type === 'WorkerShutdown') return ended('shutdown', null, null);
    return { ...ended('failed', cause.type ?? 'unexpected', cause.message), permanent: cause.nonRetryable === true };
  }
  return ended('failed', 'unexpected', error instanceof Error ? error.message : String(error));
}

function ended(outcome: PassEnd['outcome'], code: string | null, detail: string | null): PassEnd {
  return { outcome, code, detail, slicesBegun: 1, permanent: false };
}
