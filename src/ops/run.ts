import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { duePeriod } from '../jobs/due.ts';
import { nominalTimeOf } from '../jobs/occasion.ts';
import type { Registry } from '../jobs/registry.ts';
import { OnceperError } from '../kernel/error.ts';
import { compareInstants, normaliseInstant } from '../kernel/instant.ts';
import { businessKey } from '../kernel/key.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import type { InZone } from '../kernel/zone-clock.ts';
import { clockOf } from '../store/database.ts';
import { writeIntent } from '../store/intents.ts';
import { activeRuleOf } from './rule.ts';

/** For which nominal time a run is asked: a period's own, a stated one, or the moment of asking by the database's clock. */
export type When =
  | { readonly kind: 'period'; readonly period: string }
  | { readonly kind: 'at'; readonly at: Instant }
  | { readonly kind: 'now' };

/** A run that may be started: the id it will have, and what it is for. */
export interface PlannedRun {
  readonly id: string;
  readonly job: string;
  readonly period: string;
  readonly key: string;
  readonly scheduledAt: Instant;
  readonly zone: InZone;
  readonly overrides: Readonly<Record<string, string>>;
}

/**
 * Gives a run its id, nominal time and key, and refuses at the door what could never be admitted, before anything is
 * started. Throws OnceperError `unknown_job`, `no_rule`, `malformed_period`, `malformed_instant`, `unknown_override`,
 * `not_ended`, `before_first`; whatever passes is judged again by `open`, which decides.
 */
export async function planRun(
  tx: Tx,
  registry: Registry,
  ask: { readonly job: string; readonly when: When; readonly overrides: Readonly<Record<string, string>> },
): Promise<PlannedRun> {
  const { job, when, overrides } = ask;
  registry.get(job).checkOverrides(overrides);
  const { rule } = await activeRuleOf(tx, registry, job);
  const now = await clockOf(tx);
  const scheduledAt =
    when.kind === 'now' ? now : when.kind === 'at' ? normaliseInstant(when.at) : nominalTimeOf(rule, when.period);
  const due = duePeriod(rule, scheduledAt, now);
  if (due.kind === 'refused') {
    throw new OnceperError({
      code: due.code,
      message: due.reason,
      remedy: `npx onceper periods ${job} lists the periods that may be run`,
      at: due.period,
    });
  }
  const { period } = due;
  return { id: randomUUID(), job, period, key: businessKey(job, period), scheduledAt, zone: rule, overrides };
}

/** What a tick is told by our own doors; workflows/tick.ts reads it. */
interface TickStart {
  readonly job: string;
  readonly start: { readonly id: string; readonly door: 'run'; readonly scheduledAt: Instant };
}

/**
 * Writes down who asks for a run and with what overrides, then starts its tick: what Temporal carries says nothing about people.
 * Returns the workflow's id.
 */
export async function startRun(
  tx: Tx,
  client: Client,
  run: Pick<PlannedRun, 'id' | 'job' | 'key' | 'scheduledAt' | 'overrides'>,
  by: { readonly actor: string; readonly taskQueue: string },
): Promise<string> {
  const { id: startId, job, scheduledAt, overrides } = run;
  await writeIntent(tx, { startId, job, scheduledAt, actor: by.actor, overrides });
  return startTick(client, run, { ...by, door: 'run' });
}

/**
 * Starts the tick of a run that is stored, or whose intent is, which records and decides it; nothing is decided here. Started twice
 * under one workflow id it is started once. Returns the workflow's id.
 */
export async function startTick(
  client: Client,
  run: Pick<PlannedRun, 'id' | 'job' | 'scheduledAt'> & { readonly key: string | null },
  by: { readonly actor: string; readonly taskQueue: string; readonly door: 'run' | 'release' },
): Promise<string> {
  const workflowId = `${run.job}-${by.door}-${run.id}`;
  const { id, job, scheduledAt, key } = run;
  const input: TickStart = { job, start: { id, door: 'run', scheduledAt } };
  try {
    await client.workflow.start('tick', {
      taskQueue: by.taskQueue,
      workflowId,
      args: [input],
      staticSummary: `${key ?? job}, asked by ${by.actor}`,
    });
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'WorkflowExecutionAlreadyStartedError') throw error;
  }
  return workflowId;
}

/** Somebody who has asked the task queue for work: when, by Temporal's clock, and as whom. */
export interface Poller {
  readonly at: Instant;
  readonly identity: string;
}

/** Who has asked the task queue for work lately. */
export async function pollersOf(client: Client, taskQueue: string): Promise<Poller[]> {
  const { pollers } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: taskQueue },
    taskQueueType: WORKFLOW_TASKS,
  });
  return (pollers ?? []).map(({ lastAccessTime, identity }) => ({
    at: normaliseInstant(new Date(Number(lastAccessTime?.seconds ?? 0) * 1_000).toISOString()),
    identity: identity ?? '',
  }));
}

/** When somebody last asked the task queue for work, by Temporal's clock in ISO 8601, or null where nobody has lately. */
export async function lastPoll(client: Client, taskQueue: string): Promise<Instant | null> {
  const polls = await pollersOf(client, taskQueue);
  return (
    polls
      .map(({ at }) => at)
      .toSorted(compareInstants)
      .at(-1) ?? null
  );
}

/** A long poll lasts a minute, so that a worker at rest is heard of at least so often. */
export const POLL_WITHIN_MS = 90_000;

/** TASK_QUEUE_TYPE_WORKFLOW of Temporal's API. */
const WORKFLOW_TASKS = 1;
