import { Temporal } from 'temporal-polyfill';
import { OnceperError } from './error.ts';
import { instantOf } from './instant.ts';
import { formOf, type PeriodCalendar } from './period-form.ts';
import type { Instant } from './sql.ts';
import { boundary, checkZone } from './zone.ts';

export type { PeriodCalendar } from './period-form.ts';

/**
 * A period as a half-open interval. `startsOn` and `endsOn` are local dates, the latter exclusive (for an hour both are
 * dates of its boundaries); `starts` and `ends` the same boundaries as instants, and equal where the zone's clock
 * jumps over the whole period.
 */
export interface PeriodBounds {
  readonly period: string;
  readonly startsOn: string;
  readonly endsOn: string;
  readonly starts: Instant;
  readonly ends: Instant;
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

/** The period that follows; previousPeriod of it is the period again. */
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
  const zone = checkZone(calendar.zone);
  const start = startOf(period, calendar);
  const end = start.add(formOf(calendar).form.length);
  return {
    period,
    startsOn: start.toPlainDate().toString(),
    endsOn: end.toPlainDate().toString(),
    starts: boundary(start, zone).toString(),
    ends: boundary(end, zone).toString(),
  };
}

/** The one period whose interval holds the instant, whatever the zone, locale or clock of the process. */
export function periodContaining(instant: Instant, calendar: PeriodCalendar): string {
  const zone = checkZone(calendar.zone);
  const { form, firstMonth } = formOf(calendar);
  const at = instantOf(instant);
  let start = form.floor(at.toZonedDateTimeISO(zone).toPlainDateTime(), firstMonth);
  // Where the clock is put back across a boundary, the local times before the change still lie in the earlier period.
  while (Temporal.Instant.compare(boundary(start, zone), at) > 0) start = start.subtract(form.length);
  return nameOf(start, calendar);
}

/**
 * The period that a local date lies in, by date arithmetic alone: a date is never turned into an instant and back,
 * which would move it by a day in zones far from UTC.
 *
 * @throws OnceperError `malformed_date` for anything but a date that exists; `malformed_period` for an hour calendar,
 * in which a date does not name one period.
 */
export function periodOfDate(date: string, calendar: PeriodCalendar): string {
  const { form, firstMonth } = formOf(calendar);
  if (calendar.kind === 'hour') throw malformedPeriod(date, form.expected);
  return nameOf(form.floor(localMidnight(date), firstMonth), calendar);
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

/** The periods from `from` to `to`, both included, in order; none when `to` comes before `from`. */
export function periodsBetween(from: string, to: string, calendar: PeriodCalendar): readonly string[] {
  const periods: string[] = [];
  for (let period = from; comparePeriods(period, to, calendar) <= 0; period = nextPeriod(period, calendar)) {
    periods.push(period);
  }
  return periods;
}

function isJumpedOver(period: string, calendar: PeriodCalendar): boolean {
  const { starts, ends } = periodBounds(period, calendar);
  return starts === ends;
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

function malformedPeriod(text: string, expected: string): OnceperError {
  return new OnceperError({
    code: 'malformed_period',
    message: `'${text}' is not a period of this job`,
    remedy: `write ${expected}`,
    at: text,
  });
}
