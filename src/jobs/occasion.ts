import { type Firing, firingsBetween, readsTimeOf } from '../kernel/firing.ts';
import { compareInstants, instantPlus } from '../kernel/instant.ts';
import {
  existingPeriod,
  localEnd,
  type PeriodBounds,
  type PeriodCalendar,
  periodAfter,
  periodBounds,
  periodClosedBy,
  periodsBetween,
} from '../kernel/period.ts';
import type { Instant } from '../kernel/sql.ts';
import { type JobRule, periodCalendar, scheduleCalendar } from './rule.ts';

/**
 * An instant at which a period is to be closed. Every period has one, because it ended and not because something fires: where no
 * firing of the calendar closes it, its end is its occasion, which the schedule is given beside the calendar (`caught_up`), or
 * which is left to the check of expected periods (`check`), where the rule says that a time which does not exist is skipped.
 */
export interface Occasion {
  readonly at: Instant;
  readonly how: Firing['how'] | 'caught_up' | 'check';
  readonly period: string;
  readonly starts: Instant;
  readonly ends: Instant;
}

/**
 * The occasions of the periods from `from` to `to`, both included, in order: every firing that closes one of them, and for a
 * period without any its end. Computed from the rule alone, without asking Temporal.
 */
export function occasionsOf(rule: JobRule, from: string, to: string): Occasion[] {
  const calendar = periodCalendar(rule);
  const bounds = periodsBetween(from, to, calendar).map((period) => periodBounds(period, calendar));
  const [first] = bounds;
  const last = bounds.at(-1);
  if (first === undefined || last === undefined) return [];
  const end = periodBounds(periodAfter(last.period, calendar), calendar).ends;
  // With the instant at which the last one's turn ends: a firing that is lost there may be lost to it.
  const found = firingsBetween(scheduleCalendar(rule), justBefore(first.ends), end);
  const firings = found.firings.filter((firing) => !isPutOff(firing, calendar));
  const lost = new Set(found.lost.map((firing) => periodOfGap(firing, calendar)));
  const occasions: Occasion[] = [];
  let next = 0;
  for (const [index, { period, starts, ends }] of bounds.entries()) {
    // Instants of whole seconds in one form: their texts are in the order of time.
    const until = bounds[index + 1]?.ends ?? end;
    const from = next;
    while ((firings[next]?.at ?? until) < until) next += 1;
    const own = firings.slice(from, next);
    if (own.length > 0) occasions.push(...own.map(({ at, how }) => ({ at, how, period, starts, ends })));
    else {
      occasions.push({ at: ends, how: lost.has(period) ? 'check' : 'caught_up', period, starts, ends });
    }
  }
  return occasions;
}

/** The period that the stated time of a firing would have closed, had the clock read it: judged just before the jump where it ends one. */
function periodOfGap(firing: Firing, calendar: PeriodCalendar): string {
  return periodClosedBy(isPutOff(firing, calendar) ? instantPlus(firing.at, { seconds: -1 }) : firing.at, calendar);
}

/**
 * True where the clock jumps from a stated time over the end of a period (Nuuk at 23:30 on the eve of summer): the first instant
 * after the jump would close the period that ends there, which has a firing of its own, and not the one before it.
 */
function isPutOff({ at, stated }: Firing, calendar: PeriodCalendar): boolean {
  if (stated === undefined) return false;
  const closed = periodClosedBy(at, calendar);
  return periodBounds(closed, calendar).ends === at && stated < localEnd(closed, calendar);
}

/** The nominal time of a period: its first firing, or its end where none closes it. Throws `malformed_period`, `no_such_local_time`. */
export function nominalTimeOf(rule: JobRule, text: string): Instant {
  const period = existingPeriod(text, periodCalendar(rule));
  const [occasion] = occasionsOf(rule, period, period);
  // A period that exists has an occasion; its end would be the answer all the same.
  return occasion?.at ?? periodBounds(period, periodCalendar(rule)).ends;
}

/** True when the schedule itself fires at this instant: by its calendar, or because no firing closes the period that ended then. */
export function isScheduled(rule: JobRule, nominal: Instant): boolean {
  if (readsTimeOf(scheduleCalendar(rule), nominal)) return true;
  const period = periodClosedBy(nominal, periodCalendar(rule));
  return occasionsOf(rule, period, period).some(({ at, how }) => how !== 'check' && compareInstants(at, nominal) === 0);
}

/** Whether a firing is left out because it came too late and another has come since (`latest`), or because it came too late. */
export function isLeftOut(rule: JobRule, due: Pick<PeriodBounds, 'period'>, nominal: Instant, now: Instant): boolean {
  if (rule.missedFirings === 'all') return false;
  if (compareInstants(instantPlus(nominal, { seconds: rule.missedAfterSeconds }), now) >= 0) return false;
  if (rule.missedFirings === 'none') return true;
  const next = periodAfter(due.period, periodCalendar(rule));
  return compareInstants(nominalTimeOf(rule, next), now) <= 0;
}

/** Instants are kept to the microsecond: nothing lies between this one and its successor. */
function justBefore(instant: Instant): Instant {
  return instantPlus(instant, { microseconds: -1 });
}
