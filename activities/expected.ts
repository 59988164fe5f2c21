import { expectPeriods, OVERDUE } from '../src/jobs/expectation.ts';
import { parseRule } from '../src/jobs/rule.ts';
import { UNASKED_AFTER_MS } from '../src/kernel/admission.ts';
import { actionsOfJob } from '../src/store/actions.ts';
import { unfinishedBackfills } from '../src/store/backfills.ts';
import { clockOf } from '../src/store/database.ts';
import { activeRule } from '../src/store/rules.ts';
import { type UnaskedRun, unaskedRuns, waitingRunsOfJob } from '../src/store/waiting-runs.ts';
import { type WaivedRun, waivedHeldRuns } from '../src/store/waivers.ts';
import type { ActivityServices } from './services.ts';

/** What a check found: how many periods are overdue, and whose workflows must go on: owners, watchers, approved runs, backfills. */
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
  let overdue = 0;
  for (const job of registry.ids) {
    const stored = await activeRule(db, job);
    if (stored === null) continue;
    const rule = parseRule(stored.body, `${job} version ${stored.version}`);
    const [actions, waiting] = [await actionsOfJob(db, job), await waitingRunsOfJob(db, job)];
    for (const { period, state } of expectPeriods(rule, await clockOf(db), { actions, waiting })) {
      if (!OVERDUE.has(state)) continue;
      overdue += 1;
      log({ event: 'period_overdue', job, period, state });
    }
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
  for (const { job, period } of deferred) log({ event: 'period_overdue', job, period, state: 'deferred' });
  const found = { owners: owners.slice(0, MOST_OWNERS), delivering: delivering.slice(0, MOST_OWNERS) };
  return { overdue: overdue + deferred.length, ...found, approved, backfills, deferred };
}
