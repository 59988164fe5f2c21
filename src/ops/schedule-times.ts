import type { CalendarSpec } from '@temporalio/client';
import { Temporal } from 'temporal-polyfill';
import { occasionsOf } from '../jobs/occasion.ts';
import { type JobRule, periodCalendar, scheduleCalendar } from '../jobs/rule.ts';
import { isPlain, valuesOf } from '../kernel/calendar.ts';
import { OnceperError } from '../kernel/error.ts';
import { compareInstants, instantOf } from '../kernel/instant.ts';
import { comparePeriods, existingPeriod, periodBounds, periodContaining } from '../kernel/period.ts';
import { firstServerDifference } from '../kernel/server-firing.ts';
import type { Instant } from '../kernel/sql.ts';
import { clockIn, readerOf, readingAt, secondsOf } from '../kernel/zone-clock.ts';

/** Longer than a year, so that a yearly job survives an outage of any length that people would let last. */
export const CATCH_UP_DAYS = 400;

/**
 * When a job's schedule fires, in Temporal's terms. A calendar that Temporal's server reads as the rule means it stays one, in the
 * rule's zone. Any other is written out as dates in UTC, which no table of zones can bend: counted from the end of a month, by
 * business days, with a period that no firing closes, over a gap or a repeated hour.
 */
export interface ScheduleTimes {
  readonly timezone: string;
  readonly calendars: readonly CalendarSpec[];
}

/**
 * The times of a rule's schedule, and of one more instant where one is given. Dates are written out from the first period on
 * (by the hour: as far back as is caught up) until the third New Year to come, two years ahead at least; the check of
 * expected periods tops them up. Throws OnceperError `malformed_instant` for one that is not in whole seconds.
 */
export function scheduleTimes(rule: JobRule, now: Instant, oneOff?: Instant): ScheduleTimes {
  const { zone } = rule;
  const horizon = horizonOf(now);
  const occasions = occasionsOf(rule, firstWritten(rule, now), periodContaining(horizon, periodCalendar(rule)));
  const fired = occasions
    .filter(({ at, how }) => how !== 'check' && compareInstants(at, horizon) < 0)
    .map(({ at }) => at);
  const isCalendar =
    occasions.every(({ how }) => how !== 'caught_up' && how !== 'moved') && isSaidByServer(rule, horizon);
  if (isCalendar && (oneOff === undefined || isReadOnce(oneOff, rule))) {
    const extra = oneOff === undefined ? [] : writtenOut([oneOff], rule);
    return { timezone: zone, calendars: [calendarOf(rule), ...extra] };
  }
  return { timezone: 'UTC', calendars: writtenOut(oneOff === undefined ? fired : [...fired, oneOff], UTC) };
}

const UTC = { zone: 'UTC' };

/** The New Year until which dates are written out: the same all year, so that what was applied stays as it is until then. */
export function horizonOf(now: Instant): Instant {
  return `${instantOf(now).toZonedDateTimeISO('UTC').year + 3}-01-01T00:00:00Z`;
}

function firstWritten(rule: JobRule, now: Instant): string {
  const calendar = periodCalendar(rule);
  const first = existingPeriod(rule.first, calendar);
  if (rule.period !== 'hour') return first;
  const back = periodContaining(
    instantOf(now)
      .subtract({ hours: 24 * CATCH_UP_DAYS })
      .toString(),
    calendar,
  );
  return comparePeriods(first, back, calendar) < 0 ? back : first;
}

function isSaidByServer(rule: JobRule, horizon: Instant): boolean {
  const calendar = scheduleCalendar(rule);
  if (!isPlain(calendar)) return false;
  const { starts } = periodBounds(existingPeriod(rule.first, periodCalendar(rule)), periodCalendar(rule));
  return firstServerDifference(calendar, starts, horizon) === null;
}

function isReadOnce(instant: Instant, rule: JobRule): boolean {
  const clock = clockIn(rule);
  const local = readingAt(wholeSeconds(instant), clock);
  const midnight = local.round({ smallestUnit: 'day', roundingMode: 'floor' });
  return readerOf(midnight, clock)(secondsOf(local) - secondsOf(midnight)).length === 1;
}

const MONTHS = [
  'JANUARY',
  'FEBRUARY',
  'MARCH',
  'APRIL',
  'MAY',
  'JUNE',
  'JULY',
  'AUGUST',
  'SEPTEMBER',
  'OCTOBER',
  'NOVEMBER',
  'DECEMBER',
] as const;
const DAYS = ['MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY', 'SUNDAY'] as const;

/** A plain calendar as Temporal writes it. */
function calendarOf({ calendar }: JobRule): CalendarSpec {
  const { month, dayOfMonth, dayOfWeek, hour, minute } = calendar;
  return {
    ...(month === undefined ? {} : { month: namedRanges(valuesOf(month), MONTHS) }),
    ...(dayOfMonth === undefined ? {} : { dayOfMonth: rangesOf(valuesOf(dayOfMonth)) }),
    ...(dayOfWeek === undefined ? {} : { dayOfWeek: namedRanges(valuesOf(dayOfWeek), DAYS) }),
    // Temporal takes an hour that is not stated for midnight; ours is every hour.
    hour: hour === undefined ? '*' : rangesOf(valuesOf(hour)),
    minute: rangesOf(valuesOf(minute)),
    second: 0,
  };
}

/** A day, or several, of which each has the same times. */
type Row = Readonly<Record<'year' | 'month' | 'day' | 'hour' | 'minute' | 'second', readonly number[]>>;

/** Instants as calendars of a zone, few where they repeat: days with the same times are one row, and so are months and years. */
function writtenOut(instants: readonly Instant[], zone: Parameters<typeof clockIn>[0]): CalendarSpec[] {
  const clock = clockIn(zone);
  let rows = instants.map((instant): Row => {
    const { year, month, day, hour, minute, second } = readingAt(wholeSeconds(instant), clock);
    return { year: [year], month: [month], day: [day], hour: [hour], minute: [minute], second: [second] };
  });
  for (const field of ['hour', 'day', 'month', 'year'] as const) rows = merged(rows, field);
  return rows.map(({ year, month, day, hour, minute, second }) => ({
    year: rangesOf(year),
    month: namedRanges(month, MONTHS),
    dayOfMonth: rangesOf(day),
    hour: rangesOf(hour),
    minute: rangesOf(minute),
    second: rangesOf(second),
  }));
}

/** A local time of a second, as a calendar that fires then and never again. */
export function pointCalendar({ year, month, day, hour, minute, second }: Temporal.PlainDateTime): CalendarSpec {
  return { year, month: namedRanges([month], MONTHS), dayOfMonth: day, hour, minute, second };
}

/** Rows that differ in one field only, as one row. */
function merged(rows: readonly Row[], field: keyof Row): Row[] {
  const groups = new Map<string, Row>();
  for (const row of rows) {
    const id = JSON.stringify({ ...row, [field]: null });
    const known = groups.get(id);
    groups.set(id, known === undefined ? row : { ...known, [field]: [...known[field], ...row[field]] });
  }
  return [...groups.values()];
}

interface Range<T> {
  start: T;
  end: T;
  step: number;
}

/** Values as ascending ranges without gaps. */
function rangesOf(values: readonly number[]): Range<number>[] {
  const ranges: Range<number>[] = [];
  for (const value of [...new Set(values)].toSorted((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last !== undefined && last.end === value - 1) last.end = value;
    else ranges.push({ start: value, end: value, step: 1 });
  }
  return ranges;
}

function namedRanges<Name extends string>(values: readonly number[], names: readonly [Name, ...Name[]]): Range<Name>[] {
  return rangesOf(values).map(({ start, end, step }) => ({
    start: names[start - 1] ?? names[0],
    end: names[end - 1] ?? names[0],
    step,
  }));
}

function wholeSeconds(instant: Instant): Temporal.Instant {
  const at = Temporal.Instant.from(instant);
  if (at.epochMilliseconds % 1_000 === 0) return at;
  throw new OnceperError({
    code: 'malformed_instant',
    message: `a schedule fires in whole seconds, and ${instant} is none`,
    remedy: 'round it up to a second',
    at: instant,
  });
}
