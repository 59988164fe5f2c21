import { defineSearchAttributeKey } from '@temporalio/common';
import { continueAsNew, sleep, workflowInfo } from '@temporalio/workflow';
import type { OpenInput, OpenOutput } from '../activities/open.ts';
import { judgeRefusedStart, open } from './options.ts';
import { startOwner } from './start-owner.ts';

/**
 * A start of a job. From the schedule it carries the job only: the nominal time is Temporal's own search attribute. Our own
 * doors state the run's id and its nominal time; who asked, and with what overrides, stands in the ledger under that id.
 */
export interface TickInput {
  readonly job: string;
  readonly start?: {
    readonly id: string;
    readonly door: 'run' | 'backfill' | 'check';
    readonly scheduledAt: string;
  };
}

/** What became of the start: the decision, and the stored result where the key was done. */
export type TickOutput = Pick<OpenOutput, 'run' | 'decision' | 'code' | 'reason' | 'key' | 'period' | 'result'>;

const SCHEDULED_AT = defineSearchAttributeKey('TemporalScheduledStartTime', 'DATETIME');
const SCHEDULED_BY = defineSearchAttributeKey('TemporalScheduledById', 'KEYWORD');

/**
 * Opens one run and ends. `admitted` and `in_progress` both start the owner's period workflow, so that an owner that was lost
 * with Temporal's memory goes on; "already started" is success. A `deferred` run stays and asks again when the ledger says.
 */
export async function tick(input: TickInput): Promise<TickOutput> {
  const request = requestOf(input);
  for (;;) {
    const opened = await open(request);
    if (opened.decision === 'deferred') {
      if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof tick>(input);
      await sleep(opened.askAgainMs ?? 1_000);
      continue;
    }
    if (opened.decision === 'admitted' || opened.decision === 'in_progress') await startOwnerOf(opened);
    const { run, decision, code, reason, key, result } = opened;
    return { run, decision, code, reason, key, period: opened.period, result };
  }
}

/** The first execution's id names the run: it is the same after a reset and after continue-as-new. */
function requestOf(input: TickInput): OpenInput {
  const info = workflowInfo();
  if (input.start !== undefined) {
    const { id, door, scheduledAt } = input.start;
    return { startId: id, job: input.job, door, scheduledAt };
  }
  const at = info.typedSearchAttributes.get(SCHEDULED_AT);
  const by = info.typedSearchAttributes.get(SCHEDULED_BY);
  return {
    startId: info.firstExecutionRunId,
    job: input.job,
    door: 'schedule',
    scheduledAt: at === undefined ? null : at.toISOString(),
    ...(by === undefined ? {} : { schedule: by }),
  };
}

/** An admitted run whose owner can't be started is judged: it is benign, or the database was rewound (activities/epoch.ts). */
async function startOwnerOf(opened: OpenOutput): Promise<void> {
  const { job, key, owner } = opened;
  if (key === null || owner === null || opened.period === null) return;
  const started = await startOwner({ job, key, run: owner, period: opened.period });
  if (started === 'started' || opened.decision !== 'admitted') return;
  await judgeRefusedStart({ key, run: owner });
}
