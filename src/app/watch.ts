import { setTimeout as delay } from 'node:timers/promises';
import {
  type Client,
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  WorkflowNotFoundError,
} from '@temporalio/client';
import type { Anchor } from '../kernel/audit.ts';
import { type Identity, rewindReason } from '../kernel/rewind.ts';
import type { Tx } from '../kernel/sql.ts';
import type { Log } from '../observability/log.ts';
import { readIdentity } from '../store/epoch.ts';

/** The workflow that remembers who the database is, and the schedule that checks what was expected. */
const EPOCH_WORKFLOW = 'onceper-epoch';
const EXPECT_SCHEDULE = 'onceper-expect';
const EXPECT_EVERY = '5 minutes';

/**
 * Starts what watches over the ledger, where it does not run yet; any number of workers at once. The epoch workflow is asked
 * to look at once: a worker that starts on a rewound database must not be a minute late in saying so.
 */
export async function keepWatch(client: Client, taskQueue: string): Promise<void> {
  await client.workflow.signalWithStart('epoch', {
    workflowId: EPOCH_WORKFLOW,
    taskQueue,
    args: [{ remembered: null }],
    signal: 'look',
    staticSummary: 'remembers outside the database who the database is',
  });
  try {
    await client.schedule.create({
      scheduleId: EXPECT_SCHEDULE,
      spec: { intervals: [{ every: EXPECT_EVERY }] },
      action: { type: 'startWorkflow', workflowType: 'expect', workflowId: 'onceper-expect', taskQueue, args: [] },
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: EXPECT_EVERY },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}

const LOOK_AFTER_EVERY_MS = 30_000;
const LOOK_WITHIN_MS = 10_000;

/**
 * Looks after the watch for as long as a worker runs. Temporal's data may be lost under a running worker, and its watch with it:
 * then nobody would look at the database or check what was expected until a worker was started anew. `prepare` makes whatever else
 * a Temporal without memory lacks. Temporal that does not answer is told of, and asked again.
 */
export async function lookAfterWatch(
  client: Client,
  parts: {
    readonly taskQueue: string;
    readonly log: Log;
    readonly prepare: () => Promise<void>;
    readonly everyMs?: number;
  },
  signal: AbortSignal,
): Promise<void> {
  const { taskQueue, log, prepare, everyMs = LOOK_AFTER_EVERY_MS } = parts;
  while (!signal.aborted) {
    try {
      await delay(everyMs, undefined, { signal, ref: false });
      // Without a deadline a server that hangs once would have the watch looked after no more.
      await client.withDeadline(Date.now() + LOOK_WITHIN_MS, async () => {
        if (await isWatched(client)) return;
        await prepare();
        await keepWatch(client, taskQueue);
        log({ event: 'watch_restored', taskQueue });
      });
    } catch (error) {
      if (!signal.aborted)
        log({ event: 'watch_not_kept', message: error instanceof Error ? error.message : String(error) });
    }
  }
}

/** Whether Temporal has the watch: the epoch workflow, running, and the schedule of the check. */
async function isWatched(client: Client): Promise<boolean> {
  if ((await statusOfWorkflow(client, EPOCH_WORKFLOW)) !== 'RUNNING') return false;
  try {
    await client.schedule.getHandle(EXPECT_SCHEDULE).describe();
    return true;
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return false;
    throw error;
  }
}

/** The last anchor of the audit that the epoch workflow remembers, or null where it has none or does not run. */
export async function rememberedAnchor(client: Client): Promise<Anchor | null> {
  try {
    const { memo } = await client.workflow.getHandle(EPOCH_WORKFLOW).describe();
    return (memo?.['audit'] as Anchor | undefined) ?? null;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/** Who the epoch workflow remembers the database to be, or null where it has not looked or does not run. */
export async function rememberedIdentity(client: Client): Promise<Identity | null> {
  try {
    const { memo } = await client.workflow.getHandle(EPOCH_WORKFLOW).describe();
    return (memo?.['epoch'] as Identity | undefined) ?? null;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/**
 * Whether what is remembered outside is this database, or nothing. Where it is another the epoch workflow is asked to look, which
 * a worker does; until then it would take this database for a rewound one.
 */
export async function isRememberedOutside(client: Client, tx: Tx): Promise<boolean> {
  const remembered = await rememberedIdentity(client);
  if (remembered === null || rewindReason(remembered, await readIdentity(tx)) === null) return true;
  await client.workflow.getHandle(EPOCH_WORKFLOW).signal('look');
  return false;
}

/** How Temporal describes the latest execution of a workflow ID, for example `COMPLETED`; null where it knows none. */
export async function statusOfWorkflow(client: Client, workflowId: string): Promise<string | null> {
  try {
    return (await client.workflow.getHandle(workflowId).describe()).status.name;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/** Asks for a look at the database; a watch that does not run yet is told of, not thrown. */
export async function askForLook(client: Client, log: Log): Promise<void> {
  try {
    await client.workflow.getHandle(EPOCH_WORKFLOW).signal('look');
  } catch (error) {
    log({ event: 'look_not_asked', message: error instanceof Error ? error.message : String(error) });
  }
}
