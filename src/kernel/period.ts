import { Temporal } from 'temporal-polyfill';
import { OnceperError } from './error.ts';
import { instantOf } from './instant.ts';
import { formOf, type PeriodCalendar } from './period-form.ts';
import type { Instant } from './sql.ts';
import { boundary, clockIn, instantText, readingAt, secondOf } from './zone-clock.ts';

export type { PeriodCalendar } from './period-form.ts';

/**
 * A period as a half-open interval. `startsOn` and `endsOn` are local dates, the latter exclusive (for an hour both are
 * dates of its boundaries); `starts` and `ends` the same boundaries as instants, and equal where the zone's clock
 * jumps over the whole period. `facts` names the table of time zones that said so.
 */
export interface PeriodBounds {
  readonly period: string;
  readonly startsOn: string;
  readonly endsOn: string;
  readonly starts: Instant;
  readonly ends: Instant;
  readonly facts: string;
}

/**
 * The canonical text of a period of the calendar's kind: `2026`, `2026-09`, `2026-W39`, `2026-09-30`, `2026-09-30T14`,
 * `FY2027` (named by the calendar year in which it ends), `FY2027-P03`. There is one text for a period, so that there
 * is one business key; `2026-9` is refused rather than guessed.
 *
 * @throws OnceperError `malformed_period`, whose remedy names the form; `malformed_calendar`.
 */
export function parsePeriod(text: string, calendar: PeriodCalendar): string {
  return nameOf(startOf(text, calendar), calendar);
}

/**
 * The period that a text names, if its zone's clock ever reads a time in it: parsePeriod, and the day that Samoa left out, or an
 * hour that the clock jumps over, is refused. No instant lies in such a period, so it has no key, and its neighbours touch.
 *
 * @throws OnceperError `no_such_local_time` beside those of parsePeriod.
 */
export function existingPeriod(text: string, calendar: PeriodCalendar): string {
  const period = parsePeriod(text, calendar);
  if (isJumpedOver(period, calendar))
    throw noSuchLocalTime(calendar.kind === 'hour' ? 'hour' : 'date', period, calendar);
  return period;
}

/** The label that follows; previousPeriod of it is the period again. Both may name a period that the clock jumps over. */
export function nextPeriod(period: string, calendar: PeriodCalendar): string {
  return step(period, calendar, 1);
}

/** The period before; nextPeriod of it is the period again. */
export function previousPeriod(period: string, calendar: PeriodCalendar): string {
  return step(period, calendar, -1);
}

/** -1, 0 or 1 as period `a` comes before, is, or comes after `b`. */
export function comparePeriods(a: string, b: string, calendar: PeriodCalendar): -1 | 0 | 1 {
  const order = Temporal.PlainDateTime.compare(startOf(a, calendar), startOf(b, calendar));
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

/**
 * The period's interval. An hour that the clock repeats is one period and covers both; one that the clock jumps over
 * has an empty interval; a day without a midnight starts with the first instant of it that exists. The end of a period
 * is always the start of the next.
 *
 * @throws OnceperError `malformed_period`, `unknown_zone`, `malformed_calendar`.
 */
export function periodBounds(period: string, calendar: PeriodCalendar): PeriodBounds {
  const clock = clockIn(calendar);
  const start = startOf(period, calendar);
  const end = start.add(formOf(calendar).form.length);
  return {
    period,
    startsOn: start.toPlainDate().toString(),
    endsOn: end.toPlainDate().toString(),
    starts: instantText(boundary(start, clock)),
    ends: instantText(boundary(end, clock)),
    facts: clock.facts,
  };
}

/** The one period whose interval holds the instant, whatever the zone, locale or clock of the process. */
export function periodContaining(instant: Instant, calendar: PeriodCalendar): string {
  const clock = clockIn(calendar);
  const { form, firstMonth } = formOf(calendar);
  const at = instantOf(instant);
  let start = form.floor(readingAt(at, clock), firstMonth);
  // Where the clock is put back across a boundary, the local times before the change still lie in the earlier period.
  while (boundary(start, clock) > secondOf(at)) start = start.subtract(form.length);
  return nameOf(start, calendar);
}

/**
 * The period that a local date lies in, by date arithmetic alone: a date is never turned into an instant and back,
 * which would move it by a day in zones far from UTC.
 *
 * @throws OnceperError `malformed_date` for anything but a date that exists; `no_such_local_time` for one that the zone's
 * calendar left out; `malformed_period` for an hour calendar, in which a date does not name one period.
 */
export function periodOfDate(date: string, calendar: PeriodCalendar): string {
  const { form, firstMonth } = formOf(calendar);
  if (calendar.kind === 'hour') throw malformedPeriod(date, form.expected);
  const midnight = localMidnight(date);
  const clock = clockIn(calendar);
  if (boundary(midnight, clock) === boundary(midnight.add({ days: 1 }), clock)) {
    throw noSuchLocalTime('date', date, calendar);
  }
  return nameOf(form.floor(midnight, firstMonth), calendar);
}

/**
 * The period that a run planned for `nominal` closes: the last one that has ended by then, so that every nominal time of
 * October, to its last second, closes September. An hour or day that the clock jumped over is passed by: no time lies in
 * it, and if it were closed in its turn, no nominal time could ever close the one before it. The period before a period,
 * in the same sense, is periodClosedBy of its start.
 */
export function periodClosedBy(nominal: Instant, calendar: PeriodCalendar): string {
  let period = previousPeriod(periodContaining(nominal, calendar), calendar);
  while (isJumpedOver(period, calendar)) period = previousPeriod(period, calendar);
  return period;
}

/**
 * The periods from `from` to `to`, both included, in order, less those that the clock jumped over: each starts where the one
 * before it ends. None when `to` comes before `from`.
 */
export function periodsBetween(from: string, to: string, calendar: PeriodCalendar): readonly string[] {
  const periods: string[] = [];
  for (let period = from; comparePeriods(period, to, calendar) <= 0; period = nextPeriod(period, calendar)) {
    if (!isJumpedOver(period, calendar)) periods.push(period);
  }
  return periods;
}

/** The local time at which a period ends, `2026-10-01T00:00:00`, whether or not the clock ever reads it. */
export function localEnd(period: string, calendar: PeriodCalendar): string {
  return startOf(period, calendar).add(formOf(calendar).form.length).toString();
}

/** The period that starts where this one ends: the next label whose time the clock does not jump over. */
export function periodAfter(period: string, calendar: PeriodCalendar): string {
  let next = nextPeriod(period, calendar);
  while (isJumpedOver(next, calendar)) next = nextPeriod(next, calendar);
  return next;
}

/** Only a day or an hour can be left out whole: no clock has ever jumped by a week. */
function isJumpedOver(period: string, calendar: PeriodCalendar): boolean {
  if (calendar.kind !== 'day' && calendar.kind !== 'hour') return false;
  const clock = clockIn(calendar);
  const start = startOf(period, calendar);
  return boundary(start, clock) === boundary(start.add(formOf(calendar).form.length), clock);
}

function step(period: string, calendar: PeriodCalendar, direction: 1 | -1): string {
  const { length } = formOf(calendar).form;
  const start = startOf(period, calendar);
  return nameOf(direction === 1 ? start.add(length) : start.subtract(length), calendar);
}

function nameOf(start: Temporal.PlainDateTime, calendar: PeriodCalendar): string {
  const { form, firstMonth } = formOf(calendar);
  const period = form.format(start, firstMonth);
  // A step or a date may leave the years that can be written; the form then refuses the text that came out.
  if (!/^(?:FY)?[12]\d{3}(?:-|$)/.test(period)) throw malformedPeriod(period, form.expected);
  return period;
}

function startOf(text: string, calendar: PeriodCalendar): Temporal.PlainDateTime {
  const { form, firstMonth } = formOf(calendar);
  const start = form.start(text, firstMonth);
  if (start === null) throw malformedPeriod(text, form.expected);
  return start;
}

function localMidnight(date: string): Temporal.PlainDateTime {
  try {
    if (/^\d{4}-\d{2}-\d{2}$/.test(date)) return Temporal.PlainDateTime.from(`${date}T00`);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  throw new OnceperError({
    code: 'malformed_date',
    message: `'${date}' is not a date`,
    remedy: 'write a date that exists as YYYY-MM-DD, for example 2026-09-30',
    at: date,
  });
}

function noSuchLocalTime(what: 'date' | 'hour', text: string, { zone }: PeriodCalendar): OnceperError {
  return new OnceperError({
    code: 'no_such_local_time',
    message: `no such local ${what}: the clock of ${zone} jumped over ${text}`,
    remedy: `name the ${what} before or after it; nothing can have happened in it`,
    at: text,
  });
}

function malformedPeriod(text: string, expected: string): OnceperError {
  return new OnceperError({
    code: 'malformed_period',
    message: `'${text}' is not a period of this job`,
    remedy: `write ${expected}`,
    at: text,
  });
}
