import { Temporal } from 'temporal-polyfill';
import { OnceperError } from './error.ts';
import { firings } from './firing.ts';
import { instantOf } from './instant.ts';
import { type PeriodCalendar, periodBounds, periodClosedBy } from './period.ts';
import type { Instant } from './sql.ts';
import { checkZone } from './zone.ts';

/**
 * When a schedule fires: at hour:minute:00 by the zone's clock, on the days on which every stated field matches
 * (dayOfWeek 1 is Monday, 7 Sunday). An absent field matches every day.
 */
export interface ScheduleCalendar {
  readonly zone: string;
  readonly month?: number;
  readonly dayOfMonth?: number;
  readonly dayOfWeek?: number;
  readonly hour?: number;
  readonly minute: number;
}

/** The last year in which Temporal's server matches a calendar. */
const lastYear = 2100;

/**
 * The first `count` instants of the calendar strictly after `after`, in order; fewer where the calendar ends with the
 * year 2100. They are the ones that Temporal's server fires at, at changes of the clock too (firing.ts).
 *
 * @throws OnceperError `malformed_calendar` for a field out of range or a date that no year has; `unknown_zone`.
 */
export function calendarInstants(calendar: ScheduleCalendar, after: Instant, count: number): readonly Instant[] {
  checkSchedule(calendar);
  const since = instantOf(after);
  const found: Temporal.Instant[] = [];
  let date = since.toZonedDateTimeISO(calendar.zone).toPlainDate();
  while (date.year <= lastYear && found.length < count) {
    if (matchesDate(calendar, date)) {
      found.push(...firingsOn(calendar, date).filter((at) => Temporal.Instant.compare(at, since) > 0));
    }
    date = date.add({ days: 1 });
  }
  return found.slice(0, count).map((at) => at.toString());
}

/**
 * Whether the instant is one of the calendar's: the zone's clock reads its fields, at both occurrences of a repeated
 * time, or Temporal's server fires then although the clock reads another time (firing.ts).
 */
export function isCalendarInstant(calendar: ScheduleCalendar, instant: Instant): boolean {
  checkSchedule(calendar);
  const at = instantOf(instant);
  const local = at.toZonedDateTimeISO(calendar.zone).toPlainDateTime();
  const date = local.toPlainDate();
  if (!matchesDate(calendar, date)) return false;
  const { hour = local.hour, minute } = calendar;
  return (
    local.equals(date.toPlainDateTime({ hour, minute })) || firingsOn(calendar, date).some((fired) => fired.equals(at))
  );
}

const HOURS = Array.from({ length: 24 }, (_, hour) => hour);

/** When a matching date fires, in order; an hour that the calendar does not state is every hour. */
function firingsOn({ hour, minute, zone }: ScheduleCalendar, date: Temporal.PlainDate): Temporal.Instant[] {
  if (hour !== undefined) return firings(date, hour, minute, zone);
  const byHour = HOURS.flatMap((every) => firings(date, every, minute, zone));
  const ordered = byHour.sort((a, b) => Temporal.Instant.compare(a, b));
  return ordered.filter((at, index) => index === 0 || !ordered[index - 1]?.equals(at));
}

/**
 * The nominal time at which the schedule closes a period: its first instant at or after the period's end. periodClosedBy
 * of it is the period again.
 *
 * @throws OnceperError `no_closing_instant` where that instant closes another period (a schedule that fires less often
 * than periods end, a period that the clock jumped over) or where the calendar has ended, with the year 2100.
 */
export function instantClosing(period: string, calendar: PeriodCalendar, schedule: ScheduleCalendar): Instant {
  const { ends } = periodBounds(period, calendar);
  const [closing] = calendarInstants(schedule, instantOf(ends).subtract({ microseconds: 1 }).toString(), 1);
  const closed = closing === undefined ? null : periodClosedBy(closing, calendar);
  if (closing !== undefined && closed === period) return closing;
  throw new OnceperError({
    code: 'no_closing_instant',
    message:
      closed === null
        ? `the schedule's calendar ends before the end of ${period}`
        : `the schedule has no instant that closes ${period}: the next, ${closing}, closes ${closed}`,
    remedy: 'give the schedule a calendar that fires in every period, and close only periods that hold some time',
    at: period,
  });
}

function matchesDate(calendar: ScheduleCalendar, date: Temporal.PlainDate): boolean {
  const { month = date.month, dayOfMonth = date.day, dayOfWeek = date.dayOfWeek } = calendar;
  const isMatch = month === date.month && dayOfMonth === date.day && dayOfWeek === date.dayOfWeek;
  return isMatch && date.year <= lastYear;
}

function checkSchedule(calendar: ScheduleCalendar): void {
  checkZone(calendar.zone);
  checkField(calendar, 'month', calendar.month ?? 1, 1, 12);
  checkField(calendar, 'dayOfWeek', calendar.dayOfWeek ?? 1, 1, 7);
  checkField(calendar, 'hour', calendar.hour ?? 0, 0, 23);
  checkField(calendar, 'minute', calendar.minute, 0, 59);
  // 2000 is a leap year: a 29 February exists, a 30 February would be searched for until 2100 in vain.
  const month = Temporal.PlainYearMonth.from({ year: 2000, month: calendar.month ?? 1 });
  checkField(calendar, 'dayOfMonth', calendar.dayOfMonth ?? 1, 1, month.daysInMonth);
}

function checkField(calendar: ScheduleCalendar, name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw malformedCalendar(calendar, `has ${name} ${value}, which is not a whole number from ${least} to ${most}`);
}

function malformedCalendar(calendar: ScheduleCalendar, reason: string): OnceperError {
  return new OnceperError({
    code: 'malformed_calendar',
    message: `the schedule's calendar ${reason}`,
    remedy: 'correct the calendar in the rule file, for example {"dayOfMonth":1,"hour":2,"minute":0}',
    at: calendar.zone,
  });
}
