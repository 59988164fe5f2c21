import { ParentClosePolicy, startChild, WorkflowIdReusePolicy } from '@temporalio/workflow';
import type { BackfillOutput } from '../activities/backfill.ts';
import type { ExpectedOutput } from '../activities/expected.ts';
import type { backfill } from './backfill.ts';
import type { tick } from './tick.ts';
import { unlessStarted } from './unless-started.ts';

/** Behind the runs of today (3 is usual): a worker's slots go to what is live first, and children inherit it. */
const BEHIND_LIVE = { priorityKey: 4 };

/**
 * Starts the tick of a backfill's run, abandoned, under an id that the run gives: started twice it is one. `onDecided` is called
 * when the tick has ended, however; a dispatcher that is not told so looks by itself.
 */
export async function startBackfillTick(
  { job }: Pick<BackfillOutput, 'job'>,
  { run, key, scheduledAt }: BackfillOutput['starts'][number],
  onDecided: () => void,
): Promise<void> {
  const input = { job, start: { id: run, door: 'backfill', scheduledAt } } as const;
  const started = await unlessStarted(() =>
    startChild<typeof tick>('tick', {
      ...ABANDONED,
      workflowId: `${job}-backfill-${run}`,
      args: [input],
      staticSummary: `${key}, backfill`,
      priority: BEHIND_LIVE,
    }),
  );
  void started?.result().then(onDecided, onDecided);
}

/** Starts the tick of a run again; the ledger has its time, actor and overrides, and goes by those. */
export async function startTickAgain({
  run,
  job,
  key,
  scheduledAt,
}: NonNullable<ExpectedOutput['deferred']>[number] | ExpectedOutput['approved'][number]): Promise<void> {
  const input = { job, start: { id: run, door: 'run', scheduledAt } } as const;
  await unlessStarted(() =>
    startChild<typeof tick>('tick', {
      ...ABANDONED,
      workflowId: `${job}-release-${run}`,
      args: [input],
      staticSummary: `${key ?? job}, asked again`,
    }),
  );
}

/**
 * Starts the tick of a period that came due and that nothing started, abandoned, under an id that its key gives: started by every
 * check until the ledger knows it, it is one run.
 */
export async function startMissingTick({
  run,
  job,
  key,
  scheduledAt,
}: NonNullable<ExpectedOutput['missing']>[number]): Promise<void> {
  const input = { job, start: { id: run, door: 'check', scheduledAt } } as const;
  await unlessStarted(() =>
    startChild<typeof tick>('tick', {
      ...ABANDONED,
      workflowId: run,
      args: [input],
      staticSummary: `${key}, by the check`,
    }),
  );
}

/** Starts the dispatcher of a backfill again. */
export async function startDispatcher(id: string): Promise<void> {
  await unlessStarted(() =>
    startChild<typeof backfill>('backfill', { ...ABANDONED, workflowId: `backfill-${id}`, args: [{ id }] }),
  );
}

/** Whoever runs already refuses by itself; the ledger keeps anything from being done twice. */
const ABANDONED = {
  parentClosePolicy: ParentClosePolicy.ABANDON,
  workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
} as const;
