import { type JobRule, periodCalendar, scheduleCalendar } from '../jobs/rule.ts';
import { calendarInstants } from '../kernel/calendar.ts';
import { periodBounds, periodClosedBy } from '../kernel/period.ts';
import type { Instant } from '../kernel/sql.ts';

/** One firing to come: when, and which period it closes. */
export interface Due {
  readonly at: Instant;
  readonly period: string;
  readonly starts: Instant;
  readonly ends: Instant;
}

/**
 * The next firings of a rule's calendar after `now`, each with the period that it closes: computed from the rule alone, as
 * open will compute it, and without asking Temporal. A repeated local time shows twice with one period: the second run will
 * be a duplicate.
 */
export function previewSchedule(rule: JobRule, now: Instant, count: number): Due[] {
  const calendar = periodCalendar(rule);
  return calendarInstants(scheduleCalendar(rule), now, count).map((at) => {
    const { period, starts, ends } = periodBounds(periodClosedBy(at, calendar), calendar);
    return { at, period, starts, ends };
  });
}
