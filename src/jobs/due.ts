import { compareInstants, instantPlus } from '../kernel/instant.ts';
import {
  comparePeriods,
  nextPeriod,
  type PeriodBounds,
  parsePeriod,
  periodAfter,
  periodBounds,
  periodClosedBy,
  periodContaining,
  periodsBetween,
  previousPeriod,
} from '../kernel/period.ts';
import type { Instant } from '../kernel/sql.ts';
import { type JobRule, periodCalendar } from './rule.ts';

/** The period that a nominal time closes under a rule, or why that time can never be admitted. */
export type Due =
  | { readonly kind: 'due'; readonly period: string; readonly predecessor: string | null; readonly late: boolean }
  | { readonly kind: 'refused'; readonly code: string; readonly reason: string; readonly period: string };

/**
 * Derives the period from the nominal time in the rule's zone and judges it by `now`, the database's clock: a period that
 * lies before the job's first or has not ended can't be closed. No clock, zone or locale of the process takes part.
 */
export function duePeriod(rule: JobRule, nominal: Instant, now: Instant): Due {
  const calendar = periodCalendar(rule);
  const first = parsePeriod(rule.first, calendar);
  const period = periodClosedBy(nominal, calendar);
  if (comparePeriods(period, first, calendar) < 0) {
    return {
      kind: 'refused',
      code: 'before_first',
      period,
      reason: `${period} lies before the job's first period ${first}`,
    };
  }
  const { ends } = periodBounds(period, calendar);
  if (compareInstants(ends, now) > 0) {
    return { kind: 'refused', code: 'not_ended', period, reason: `${period} ends at ${ends}, which is still to come` };
  }
  const { starts } = periodBounds(period, calendar);
  // Not the previous label: an hour or a day that the clock jumped over is empty, and no nominal time closes it.
  const predecessor = period === first ? null : periodClosedBy(starts, calendar);
  return { kind: 'due', period, predecessor, late: isLate(rule, ends, now) };
}

/** Lateness is counted from the period's end, not from the nominal time: a backfill's nominal time is as old as its period. */
function isLate(rule: JobRule, ends: Instant, now: Instant): boolean {
  if (rule.latenessDays === null) return false;
  return compareInstants(instantPlus(ends, { hours: rule.latenessDays * 24 }), now) < 0;
}

/**
 * The bounds of every period from the rule's first to the one after the current, ascending: rows exist ahead of need, so
 * that a late row always finds a next open period.
 */
export function periodsAhead(rule: JobRule, now: Instant): readonly PeriodBounds[] {
  const calendar = periodCalendar(rule);
  const last = periodAfter(periodContaining(now, calendar), calendar);
  const { kind, zone, fiscalStartMonth, clock } = calendar;
  const id = JSON.stringify([kind, zone, fiscalStartMonth, clock?.facts, rule.first]);
  const known = boundsKnown.get(id) ?? [];
  const at = known.findIndex(({ period }) => period === last);
  if (at !== -1) return known.slice(0, at + 1);
  const newest = known.at(-1)?.period;
  const from = newest === undefined ? parsePeriod(rule.first, calendar) : nextPeriod(newest, calendar);
  const all = [...known, ...periodsBetween(from, last, calendar).map((period) => periodBounds(period, calendar))];
  boundsKnown.set(id, all);
  return all;
}

/**
 * The bounds found so far, by calendar and first period: they are a function of these and of the facts about the zone, and a
 * period is only ever added. Found anew they were 40 ms of each open for 26 years of months, and over a second for a year of hours.
 */
const boundsKnown = new Map<string, readonly PeriodBounds[]>();

/** Until when the bounds of periods may be stored already: what is learned of the zone's clock later holds from here on. */
export function decidedUntil(rule: JobRule, now: Instant): Instant {
  const calendar = periodCalendar(rule);
  return periodBounds(periodAfter(periodContaining(now, calendar), calendar), calendar).ends;
}

/**
 * Every period from the rule's first to the last one that has ended, ascending: what the ledger must account for. A period
 * that the clock jumped over has no instant, so no run can close it and none is expected.
 */
export function endedPeriods(rule: JobRule, now: Instant): readonly string[] {
  const calendar = periodCalendar(rule);
  const last = previousPeriod(periodContaining(now, calendar), calendar);
  return periodsBetween(parsePeriod(rule.first, calendar), last, calendar);
}
