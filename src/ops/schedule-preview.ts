import { type Occasion, occasionsOf } from '../jobs/occasion.ts';
import { type JobRule, periodCalendar } from '../jobs/rule.ts';
import { compareInstants } from '../kernel/instant.ts';
import { comparePeriods, existingPeriod, periodAfter, periodClosedBy, periodContaining } from '../kernel/period.ts';
import type { Instant } from '../kernel/sql.ts';
import { horizonOf } from './schedule-times.ts';

/** From a period on, and to another where one is given. */
export interface PreviewRange {
  readonly from: string;
  readonly to: string | null;
}

/**
 * The occasions of a rule, each with the period that it closes: the next `count` after `now`, or of the periods of a range.
 * Computed from the rule alone, as open will compute it, and without asking Temporal. `how` marks those that come after a gap,
 * at one of two readings of a repeated time, on another day because of a holiday; and each period that no firing closes, which
 * the schedule is given an instant for (`caught_up`) or which is left to the check of expected periods (`check`).
 */
export function previewSchedule(
  rule: JobRule,
  now: Instant,
  count: number,
  range: PreviewRange | null = null,
): Occasion[] {
  const calendar = periodCalendar(rule);
  const first = existingPeriod(rule.first, calendar);
  // The period that ended last may have its firings still to come.
  const ended = periodClosedBy(now, calendar);
  let from = range === null ? ended : existingPeriod(range.from, calendar);
  if (comparePeriods(from, first, calendar) < 0) from = first;
  if (range !== null && range.to !== null)
    return occasionsOf(rule, from, existingPeriod(range.to, calendar)).slice(0, count);
  const found: Occasion[] = [];
  for (let period = from; found.length < count; period = periodAfter(period, calendar)) {
    const occasions = occasionsOf(rule, period, period);
    found.push(...(range === null ? occasions.filter(({ at }) => compareInstants(at, now) > 0) : occasions));
  }
  return found.slice(0, count);
}

/** The periods from the present one to two years ahead that no firing closes, in order. */
export function unclosedPeriods(rule: JobRule, now: Instant): Occasion[] {
  const calendar = periodCalendar(rule);
  const [from, to] = [now, horizonOf(now)].map((at) => periodContaining(at, calendar)) as [string, string];
  return occasionsOf(rule, from, to).filter(({ how }) => how === 'caught_up' || how === 'check');
}
