import { decidedUntil } from '../src/jobs/due.ts';
import { type ExpectedPeriod, expectPeriods, OVERDUE } from '../src/jobs/expectation.ts';
import { nominalTimeOf } from '../src/jobs/occasion.ts';
import { type JobRule, storedRule } from '../src/jobs/rule.ts';
import { UNASKED_AFTER_MS } from '../src/kernel/admission.ts';
import { compareInstants, instantPlus } from '../src/kernel/instant.ts';
import { businessKey } from '../src/kernel/key.ts';
import type { Instant } from '../src/kernel/sql.ts';
import { actionsOfJob } from '../src/store/actions.ts';
import { workerActor } from '../src/store/audit-ledger.ts';
import { unfinishedBackfills } from '../src/store/backfills.ts';
import { clockOf, transaction } from '../src/store/database.ts';
import { activeRule, lockJob } from '../src/store/rules.ts';
import { appliedSchedule } from '../src/store/schedules.ts';
import { strandedRuns, type UnaskedRun, unaskedRuns, waitingRunsOfJob } from '../src/store/waiting-runs.ts';
import { type WaivedRun, waivedHeldRuns } from '../src/store/waivers.ts';
import { adoptZoneTable } from '../src/store/zone-tables.ts';
import { checkStartId } from './open.ts';
import type { ActivityServices } from './services.ts';

/**
 * What a check found: how many periods are overdue, whose workflows must go on (owners, watchers, approved runs, backfills), and
 * which periods came due and were started by nothing.
 */
export interface ExpectedOutput {
  readonly overdue: number;
  readonly owners: readonly {
    readonly job: string;
    readonly period: string;
    readonly key: string;
    readonly run: string;
  }[];
  readonly delivering: readonly string[];
  /** Held runs that were approved while Temporal could not be told, and backfills that have not ended. */
  readonly approved: readonly WaivedRun[];
  readonly backfills: readonly string[];
  readonly missing?: readonly WaivedRun[];
  /** Deferred runs that nobody asks for any more. A worker of an earlier release gives none. */
  readonly deferred?: readonly UnaskedRun[];
}

/** More owners, and more keys, than this wait for the next check: their ids cross Temporal. */
const MOST_OWNERS = 100;

/**
 * Compares every expected period of every job that has a rule with the ledger, never with Temporal. Each overdue one is an
 * event, every time, so that an alert holds until somebody acts. Every unfinished key's owner is named, and every key
 * that delivers, what was approved and never begun, and deferred runs that lost their tick: starting what runs already is refused by Temporal and harmless.
 */
export async function expected(services: ActivityServices): Promise<ExpectedOutput> {
  const { db, registry, log } = services;
  const owners: ExpectedOutput['owners'][number][] = [];
  const delivering: string[] = [];
  const missing: WaivedRun[] = [];
  let overdue = 0;
  for (const job of registry.ids) {
    await learnZone(services, job);
    const stored = await activeRule(db, job);
    if (stored === null) continue;
    const rule = storedRule(stored);
    const [actions, waiting] = [await actionsOfJob(db, job), await waitingRunsOfJob(db, job)];
    const now = await clockOf(db);
    const periods = expectPeriods(rule, now, { actions, waiting });
    for (const { period, state } of periods) {
      if (!OVERDUE.has(state)) continue;
      overdue += 1;
      log({ event: 'period_overdue', job, period, state });
    }
    missing.push(...(await toStart(services, rule, now, periods)));
    for (const { state, period, key, ownerRun, ...action } of actions) {
      if (action.delivering) delivering.push(key);
      if (state === 'admitted' || state === 'running' || state === 'failed')
        owners.push({ job, period, key, run: ownerRun });
    }
  }
  const approved = await waivedHeldRuns(db, MOST_OWNERS);
  const backfills = await unfinishedBackfills(db, MOST_OWNERS);
  const unasked = { jobs: registry.ids, unaskedMs: UNASKED_AFTER_MS, limit: MOST_OWNERS };
  const deferred = await unaskedRuns(db, unasked);
  for (const { job, period } of deferred) {
    if (period !== null) log({ event: 'period_overdue', job, period, state: 'deferred' });
  }
  for (const { job, code, count, since } of await strandedRuns(db, MOST_OWNERS)) {
    log({ event: 'runs_stranded', job, code, count, since });
  }
  const found = { owners: owners.slice(0, MOST_OWNERS), delivering: delivering.slice(0, MOST_OWNERS) };
  const started = { missing: missing.slice(0, MOST_OWNERS), deferred };
  return { overdue: overdue + deferred.length, ...found, approved, backfills, ...started };
}

/**
 * The missing periods whose occasion has come since the job has a schedule, while that is not paused: it is what the schedule should
 * have started. It had its chance first, and what was due before the schedule was applied is nobody's but a person's to ask for.
 */
async function toStart(
  { db, scheduleState }: ActivityServices,
  rule: JobRule,
  now: Instant,
  periods: readonly ExpectedPeriod[],
): Promise<WaivedRun[]> {
  const { job } = rule;
  const names = periods.filter(({ state }) => state === 'missing').map(({ period }) => period);
  const applied = names.length === 0 ? null : await appliedSchedule(db, job);
  if (applied === null || (await scheduleState(job)) !== 'active') return [];
  const latest = instantPlus(now, { seconds: -SCHEDULE_FIRST_SECONDS });
  return names
    .map((period) => ({ period, scheduledAt: nominalTimeOf(rule, period) }))
    .filter(({ scheduledAt: at }) => compareInstants(at, applied.since) >= 0 && compareInstants(at, latest) <= 0)
    .map(({ period, scheduledAt }) => ({
      job,
      key: businessKey(job, period),
      run: checkStartId(job, period),
      scheduledAt,
    }));
}

/** The schedule's own tick opens within seconds; a run of the check beside it would only be in its way. */
const SCHEDULE_FIRST_SECONDS = 120;

/** Makes known to the job what PostgreSQL has learned of its zone, from where nothing is decided yet, and to its schedule what is new. */
async function learnZone({ db, release, log, topUpSchedule }: ActivityServices, job: string): Promise<void> {
  const stored = await activeRule(db, job);
  if (stored === null) return;
  const rule = storedRule(stored);
  // An import takes no job lock: with an hour of slack no period that it may bound meanwhile is taken for undecided.
  const decided = decidedUntil(rule, instantPlus(await clockOf(db), { hours: 1 }));
  const { zone, first } = rule;
  const adopted = await transaction(db, { lockTimeout: 15_000, label: 'zone' }, async (tx) => {
    await lockJob(tx, job);
    return adoptZoneTable(tx, { job, zone, first, decidedUntil: decided, actor: workerActor(release) });
  });
  if (adopted.kind === 'adopted') {
    log({
      event: 'zone_adopted',
      job,
      zone,
      facts: adopted.clock.facts,
      from: adopted.holdsFrom ?? 'the first period',
    });
  }
  const topped = await topUpSchedule(job);
  if (topped === 'topped_up') log({ event: 'schedule_topped_up', job });
}
