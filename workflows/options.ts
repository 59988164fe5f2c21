import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';

/**
 * Opening and recording an end may be tried again: asked twice they answer the same. A database that is away for a night
 * must not lose a tick, so the bound is a week, not a count.
 */
export const { open } = proxyActivities<Pick<Activities, 'open'>>({
  startToCloseTimeout: '30 seconds',
  scheduleToCloseTimeout: '7 days',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
});

export const { endAttempt } = proxyActivities<Pick<Activities, 'endAttempt'>>({
  startToCloseTimeout: '30 seconds',
  retry: {
    initialInterval: '500 milliseconds',
    backoffCoefficient: 2,
    maximumInterval: '5 seconds',
    maximumAttempts: 5,
  },
});

/**
 * The steps of a pass are tried once: a failure ends the attempt, and the ledger numbers the next. 3 s without a heartbeat
 * (four beats) mean that the worker is gone. A claim may wait for a holder's transactions, at most 0.8 × its lease + 1 s.
 */
export const { claim, close } = proxyActivities<Pick<Activities, 'claim' | 'close'>>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '3 seconds',
  retry: { maximumAttempts: 1 },
});

export const { perform } = proxyActivities<Pick<Activities, 'perform'>>({
  startToCloseTimeout: '30 minutes',
  heartbeatTimeout: '3 seconds',
  retry: { maximumAttempts: 1 },
});

/** Looks at the ledger as a whole. A database that is away is looked at again by the next check, minutes later. */
export const { look, expected, judgeRefusedStart, deliveryState, advance } = proxyActivities<
  Pick<Activities, 'look' | 'expected' | 'judgeRefusedStart' | 'deliveryState' | 'advance'>
>({
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '10 seconds', maximumAttempts: 5 },
});
