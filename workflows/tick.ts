import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { defineSearchAttributeKey } from '@temporalio/common';
import {
  continueAsNew,
  ParentClosePolicy,
  sleep,
  startChild,
  WorkflowIdReusePolicy,
  workflowInfo,
} from '@temporalio/workflow';
import type { OpenInput, OpenOutput } from '../activities/open.ts';
import { open } from './options.ts';
import type { period } from './period.ts';
import { periodAttributes } from './search-attributes.ts';

/**
 * A start of a job. From the schedule it carries the job only: the nominal time is Temporal's own search attribute. Our own
 * doors state the run's id, its nominal time and who asked.
 */
export interface TickInput {
  readonly job: string;
  readonly start?: {
    readonly id: string;
    readonly door: 'run' | 'backfill';
    readonly scheduledAt: string;
    readonly actor: string;
    readonly overrides: Readonly<Record<string, string>>;
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
    if (opened.decision === 'admitted' || opened.decision === 'in_progress') await startOwner(opened);
    const { run, decision, code, reason, key, result } = opened;
    return { run, decision, code, reason, key, period: opened.period, result };
  }
}

/** The first execution's id names the run: it is the same after a reset and after continue-as-new. */
function requestOf(input: TickInput): OpenInput {
  const info = workflowInfo();
  if (input.start !== undefined) {
    const { id, door, scheduledAt, actor, overrides } = input.start;
    return { startId: id, job: input.job, door, scheduledAt, actor, overrides };
  }
  const at = info.typedSearchAttributes.get(SCHEDULED_AT);
  const by = info.typedSearchAttributes.get(SCHEDULED_BY);
  return {
    startId: info.firstExecutionRunId,
    job: input.job,
    door: 'schedule',
    scheduledAt: at === undefined ? null : at.toISOString(),
    actor: by === undefined ? `workflow:${info.workflowId}` : `schedule:${by}`,
    overrides: {},
  };
}

async function startOwner(opened: OpenOutput): Promise<void> {
  const { key, owner, job } = opened;
  if (key === null || owner === null || opened.period === null) return;
  try {
    await startChild<typeof period>('period', {
      workflowId: key,
      args: [{ run: owner }],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
      staticSummary: `${key}, run ${owner}`,
      typedSearchAttributes: periodAttributes(job, opened.period, 'admitted'),
    });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}
