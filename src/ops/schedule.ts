import type { Client, ScheduleDescription } from '@temporalio/client';
import type { Occasion } from '../jobs/occasion.ts';
import type { Registry } from '../jobs/registry.ts';
import { normaliseInstant } from '../kernel/instant.ts';
import type { Instant } from '../kernel/sql.ts';
import { clockOf, type Database, transaction } from '../store/database.ts';
import { storeOneOff } from '../store/rules.ts';
import { withScheduleLock } from '../store/schedule-lock.ts';
import { appliedSchedule, oneOffsToCome, recordSchedule } from '../store/schedules.ts';
import { activeRuleOf } from './rule.ts';
import { calendarsText, driftOf, planDigest, type SchedulePlan, scheduleOptions } from './schedule-plan.ts';
import { unclosedPeriods } from './schedule-preview.ts';

/** What applying a schedule did, and what it read back afterwards. */
export interface Applied {
  readonly kind: 'created' | 'updated' | 'unchanged';
  /** What was different before; empty unless `updated`. */
  readonly changed: readonly string[];
  /** What the server still shows differently; empty when it took the plan. */
  readonly drift: readonly string[];
  readonly paused: boolean;
  readonly note: string | null;
  /** The next instants at which it fires, soonest first. */
  readonly next: readonly Instant[];
  /** The periods to come that no firing of the calendar closes, as far as dates are written out. */
  readonly unclosed: readonly Occasion[];
}

/**
 * Makes the job's schedule in Temporal what the plan says, and reads it back. Pause state, note and remaining actions are
 * the operator's: an update carries them over. One that is right already is not touched, since Temporal forgets ticks that
 * it has yet to catch up with when a schedule is updated. A one-off instant must be stored before it is applied (or its run
 * would be taken for a manual one): applyJobSchedule does both.
 */
export async function applySchedule(client: Client, plan: SchedulePlan): Promise<Applied> {
  const before = await describeSchedule(client, plan.job);
  if (before === null) return (await createSchedule(client, plan)) ?? applySchedule(client, plan);
  const changed = driftOf(plan, before);
  if (changed.length === 0) return readBack(plan, before, 'unchanged', []);
  await client.schedule.getHandle(plan.job).update((found) => ({ ...scheduleOptions(plan), state: found.state }));
  return readBack(plan, await mustDescribe(client, plan.job), 'updated', changed);
}

/**
 * Applies a job's schedule by its active rule, one such apply of a job at a time. A one-off instant is stored first, with
 * who asked for it and why. Throws OnceperError `unknown_job`, `no_rule`, `malformed_instant`.
 */
export async function applyJobSchedule(
  db: Database,
  client: Client,
  ask: {
    readonly registry: Registry;
    readonly job: string;
    readonly taskQueue: string;
    /** Who applies it. */
    readonly actor: string;
    readonly oneOff?: { readonly at: Instant; readonly reason: string; readonly actor: string };
  },
): Promise<Applied> {
  const { job, actor, oneOff } = ask;
  const plan = await planOf(db, ask);
  const extra = oneOff === undefined ? {} : { oneOff: normaliseInstant(oneOff.at) };
  scheduleOptions({ ...plan, ...extra });
  await transaction(db, { lockTimeout: 10_000 }, async (tx) => {
    if (oneOff !== undefined) await storeOneOff(tx, { ...oneOff, job, at: normaliseInstant(oneOff.at) });
    await recordSchedule(tx, { job, plan: planDigest(plan), actor });
  });
  return withScheduleLock(db, job, () => applySchedule(client, { ...plan, ...extra }));
}

/**
 * Applies a job's schedule again where what its rule comes to has changed since: dates that are written out go on into another
 * year, or the ledger has learned of a change of clocks. One that was never applied, or is not there, is not made; one-off
 * instants that are still to come stay (one of them: a schedule has one at a time). Returns what was done.
 */
export async function topUpSchedule(
  db: Database,
  client: Client,
  ask: { readonly registry: Registry; readonly job: string; readonly taskQueue: string; readonly actor: string },
): Promise<'none' | 'current' | 'topped_up'> {
  const { job, actor } = ask;
  const applied = await appliedSchedule(db, job);
  if (applied === null) return 'none';
  const plan = await planOf(db, ask);
  const digest = planDigest(plan);
  if (digest === applied.plan) return 'current';
  return withScheduleLock(db, job, async () => {
    if ((await describeSchedule(client, job)) === null) return 'none';
    const [oneOff] = await oneOffsToCome(db, job);
    await applySchedule(client, oneOff === undefined ? plan : { ...plan, oneOff });
    // Afterwards: what Temporal refused is tried again by the next check.
    await transaction(db, { lockTimeout: 10_000 }, (tx) => recordSchedule(tx, { job, plan: digest, actor }));
    return 'topped_up';
  });
}

async function planOf(
  db: Database,
  { registry, job, taskQueue }: { readonly registry: Registry; readonly job: string; readonly taskQueue: string },
): Promise<SchedulePlan> {
  const { rule } = await activeRuleOf(db, registry, job);
  return { job, rule, taskQueue, now: await clockOf(db) };
}

/** Whether Temporal fires a job's schedule now: `paused` by an operator, `missing` where there is none. */
export async function scheduleState(client: Client, job: string): Promise<'active' | 'paused' | 'missing'> {
  const found = await describeSchedule(client, job);
  if (found === null) return 'missing';
  return found.state.paused ? 'paused' : 'active';
}

/** A job's schedule as it stands in Temporal, beside what the code says it must be. */
export interface ListedSchedule {
  readonly job: string;
  readonly state: 'active' | 'paused' | 'missing';
  readonly zone: string | null;
  readonly calendar: string | null;
  readonly note: string | null;
  readonly remainingActions: number | null;
  readonly next: readonly Instant[];
  readonly taken: number;
  readonly missedCatchUp: number;
  readonly drift: readonly string[];
}

/** The schedules of the given jobs, each read from Temporal and compared with its rule. */
export async function listSchedules(
  db: Database,
  client: Client,
  ask: { readonly registry: Registry; readonly jobs: readonly string[]; readonly taskQueue: string },
): Promise<ListedSchedule[]> {
  const listed: ListedSchedule[] = [];
  for (const job of ask.jobs) listed.push(await listedSchedule(db, client, { ...ask, job }));
  return listed;
}

async function listedSchedule(
  db: Database,
  client: Client,
  ask: { readonly registry: Registry; readonly job: string; readonly taskQueue: string },
): Promise<ListedSchedule> {
  const { job, registry, taskQueue } = ask;
  const found = await describeSchedule(client, job);
  const nothing = { zone: null, calendar: null, note: null, remainingActions: null, next: [] };
  if (found === null) return { job, state: 'missing', ...nothing, taken: 0, missedCatchUp: 0, drift: [] };
  const plan = await planOf(db, { registry, job, taskQueue });
  return {
    job,
    state: found.state.paused ? 'paused' : 'active',
    zone: found.spec.timezone ?? 'UTC',
    calendar: calendarsText(found.spec.calendars ?? []),
    note: noteOf(found),
    remainingActions: found.state.remainingActions ?? null,
    next: nextOf(found),
    taken: found.info.numActionsTaken,
    missedCatchUp: found.info.numActionsMissedCatchupWindow,
    drift: driftOf(plan, found),
  };
}

/** The job's schedule, or null where there is none. */
export async function describeSchedule(client: Client, job: string): Promise<ScheduleDescription | null> {
  try {
    return await client.schedule.getHandle(job).describe();
  } catch (error) {
    if (error instanceof Error && error.name === 'ScheduleNotFoundError') return null;
    throw error;
  }
}

/** Null where another apply made it meanwhile. */
async function createSchedule(client: Client, plan: SchedulePlan): Promise<Applied | null> {
  try {
    await client.schedule.create({ scheduleId: plan.job, ...scheduleOptions(plan) });
  } catch (error) {
    if (error instanceof Error && error.name === 'ScheduleAlreadyRunning') return null;
    throw error;
  }
  return readBack(plan, await mustDescribe(client, plan.job), 'created', []);
}

async function mustDescribe(client: Client, job: string): Promise<ScheduleDescription> {
  return client.schedule.getHandle(job).describe();
}

function readBack(
  plan: SchedulePlan,
  found: ScheduleDescription,
  kind: Applied['kind'],
  changed: readonly string[],
): Applied {
  const drift = driftOf(plan, found);
  const { rule, now } = plan;
  const unclosed = unclosedPeriods(rule, now);
  return { kind, changed, drift, paused: found.state.paused, note: noteOf(found), next: nextOf(found), unclosed };
}

function noteOf(found: ScheduleDescription): string | null {
  return found.state.note === undefined || found.state.note === '' ? null : found.state.note;
}

const NEXT_SHOWN = 3;

function nextOf(found: ScheduleDescription): Instant[] {
  return found.info.nextActionTimes.slice(0, NEXT_SHOWN).map((at) => normaliseInstant(at.toISOString()));
}
