import { Temporal } from 'temporal-polyfill';
import { OnceperError } from './error.ts';
import { checkZone } from './zone.ts';
import type { InZone } from './zone-clock.ts';

/** One value of a calendar's field, or several of which any may match. */
export type Field = number | readonly number[];

/**
 * When a schedule fires: at hour:minute:00 by the zone's clock, on the days on which every stated field matches. An absent
 * field matches every day, an absent hour every hour.
 */
export interface ScheduleCalendar extends InZone {
  readonly month?: Field | undefined;
  /** 1 to 31, or from the end of the month: -1 is its last day, -2 the one before. */
  readonly dayOfMonth?: Field | undefined;
  /** 1 is Monday, 7 Sunday. */
  readonly dayOfWeek?: Field | undefined;
  /** With dayOfWeek: the how-manieth of its month, 1 to 5, or -1 for the last. */
  readonly nthDayOfWeek?: Field | undefined;
  /** The how-manieth business day of its month, 1 to 23, or -1 for the last. */
  readonly nthBusinessDay?: Field | undefined;
  readonly hour?: Field | undefined;
  readonly minute: Field;
  readonly businessDays?: BusinessDays | undefined;
  /** Dates on which it does not fire, whatever else is stated. */
  readonly except?: readonly string[] | undefined;
  /** At a time that the clock jumps over: the first instant after the jump, or not at all. */
  readonly gap?: 'after' | 'skip' | undefined;
  /** At a time that the clock reads twice: which of the two it is. */
  readonly repeated?: 'first' | 'second' | undefined;
}

/** Which days are none of business, and what becomes of a firing that falls on one. */
interface BusinessDays {
  readonly weekend: readonly number[];
  readonly holidays: readonly string[];
  readonly otherwise: 'skip' | 'next' | 'previous';
}

/** Whether the schedule fires on a date: as its fields say, moved there from a day of no business, or not. */
export type DateMatch = 'no' | 'stated' | 'moved';

/** How the calendar matches a date of its zone. The calendar must have passed checkCalendar. */
export function matchOf(calendar: ScheduleCalendar, date: Temporal.PlainDate): DateMatch {
  const { businessDays, except } = calendar;
  if (except?.includes(date.toString()) === true) return 'no';
  if (businessDays === undefined) return fieldsMatch(calendar, date) ? 'stated' : 'no';
  if (!isBusinessDay(businessDays, date)) return 'no';
  if (fieldsMatch(calendar, date)) return 'stated';
  const { otherwise } = businessDays;
  if (otherwise === 'skip') return 'no';
  // Whatever the fields name among the days of no business next to this one was moved here.
  const step = otherwise === 'next' ? -1 : 1;
  for (let day = date.add({ days: step }); !isBusinessDay(businessDays, day); day = day.add({ days: step })) {
    if (fieldsMatch(calendar, day)) return 'moved';
  }
  return 'no';
}

/** True where Temporal's own calendars say the same on every date: no counting from an end, no business days, no exceptions. */
export function isPlain(calendar: ScheduleCalendar): boolean {
  const { dayOfMonth, nthDayOfWeek, nthBusinessDay, businessDays, except } = calendar;
  const counts = [nthDayOfWeek, nthBusinessDay, businessDays].some((field) => field !== undefined);
  return !counts && (except ?? []).length === 0 && valuesOf(dayOfMonth ?? []).every((day) => day > 0);
}

/** A field's values. */
export function valuesOf(field: Field): readonly number[] {
  return typeof field === 'number' ? [field] : field;
}

/** The last year in which a schedule fires, as Temporal's server matches none after it. */
export const LAST_YEAR = 2100;

function fieldsMatch(calendar: ScheduleCalendar, date: Temporal.PlainDate): boolean {
  const { month, dayOfMonth, dayOfWeek, nthDayOfWeek, nthBusinessDay, businessDays } = calendar;
  return (
    date.year <= LAST_YEAR &&
    (month === undefined || valuesOf(month).includes(date.month)) &&
    (dayOfWeek === undefined || valuesOf(dayOfWeek).includes(date.dayOfWeek)) &&
    (dayOfMonth === undefined || hasEither(dayOfMonth, placesOf(date.day, date.daysInMonth))) &&
    (nthDayOfWeek === undefined || hasEither(nthDayOfWeek, weekPlacesOf(date))) &&
    (nthBusinessDay === undefined || hasEither(nthBusinessDay, businessPlacesOf(businessDays ?? USUAL_WEEK, date)))
  );
}

/** A place counted from the start, from 1 on, and from the end, from -1 down. */
type Places = readonly [number, number];

function hasEither(field: Field, places: Places): boolean {
  return valuesOf(field).some((value) => places.includes(value));
}

function placesOf(place: number, of: number): Places {
  return [place, place - of - 1];
}

function weekPlacesOf({ day, daysInMonth }: Temporal.PlainDate): Places {
  return [Math.ceil(day / 7), -Math.ceil((daysInMonth - day + 1) / 7)];
}

/** Places of no business day are zeros, which no field states. */
function businessPlacesOf(days: BusinessDays, date: Temporal.PlainDate): Places {
  if (!isBusinessDay(days, date)) return [0, 0];
  const first = date.with({ day: 1 });
  const month = Array.from({ length: date.daysInMonth }, (_, index) => isBusinessDay(days, first.add({ days: index })));
  const count = (part: readonly boolean[]) => part.filter(Boolean).length;
  return placesOf(count(month.slice(0, date.day)), count(month));
}

const USUAL_WEEK: BusinessDays = { weekend: [6, 7], holidays: [], otherwise: 'skip' };

function isBusinessDay({ weekend, holidays }: BusinessDays, date: Temporal.PlainDate): boolean {
  return !weekend.includes(date.dayOfWeek) && !holidays.includes(date.toString());
}

/**
 * Checks that a calendar can fire. Throws OnceperError `malformed_calendar` for a field out of range, a date that no year has, a
 * week without business days; `unknown_zone`.
 */
export function checkCalendar(calendar: ScheduleCalendar): void {
  checkZone(calendar.zone);
  const months = valuesOf(calendar.month ?? []);
  checkField(calendar, 'month', 1, 12);
  checkField(calendar, 'dayOfWeek', 1, 7);
  checkField(calendar, 'hour', 0, 23);
  checkField(calendar, 'minute', 0, 59);
  checkPlaces(calendar, 'nthDayOfWeek', 5);
  checkPlaces(calendar, 'nthBusinessDay', 23);
  // 2000 is a leap year: a 29 February exists, a 30 February would be searched for until 2100 in vain.
  const lengths = months.map((month) => Temporal.PlainYearMonth.from({ year: 2000, month }).daysInMonth);
  checkPlaces(calendar, 'dayOfMonth', Math.max(...(lengths.length === 0 ? [31] : lengths)));
  if (calendar.nthDayOfWeek !== undefined && calendar.dayOfWeek === undefined) {
    throw malformedCalendar(calendar, 'has nthDayOfWeek without the dayOfWeek that it counts');
  }
  const { weekend = [], holidays = [] } = calendar.businessDays ?? {};
  if (new Set(weekend).size === 7) throw malformedCalendar(calendar, 'has a weekend of all seven days');
  for (const date of [...holidays, ...(calendar.except ?? [])]) checkDate(calendar, date);
}

function checkField(
  calendar: ScheduleCalendar,
  name: 'month' | 'dayOfWeek' | 'hour' | 'minute',
  least: number,
  most: number,
) {
  for (const value of valuesOf(calendar[name] ?? [])) {
    if (Number.isInteger(value) && value >= least && value <= most) continue;
    throw malformedCalendar(calendar, `has ${name} ${value}, which is not a whole number from ${least} to ${most}`);
  }
}

function checkPlaces(calendar: ScheduleCalendar, name: 'dayOfMonth' | 'nthDayOfWeek' | 'nthBusinessDay', most: number) {
  for (const value of valuesOf(calendar[name] ?? [])) {
    if (Number.isInteger(value) && value !== 0 && Math.abs(value) <= most) continue;
    throw malformedCalendar(calendar, `has ${name} ${value}, which is neither 1 to ${most} nor -1 to -${most}`);
  }
}

function checkDate(calendar: ScheduleCalendar, text: string): void {
  try {
    if (/^\d{4}-\d{2}-\d{2}$/.test(text)) {
      Temporal.PlainDate.from(text);
      return;
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  throw malformedCalendar(calendar, `names '${text}', which is no date YYYY-MM-DD`);
}

function malformedCalendar(calendar: ScheduleCalendar, reason: string): OnceperError {
  return new OnceperError({
    code: 'malformed_calendar',
    message: `the schedule's calendar ${reason}`,
    remedy: 'correct the calendar in the rule file, for example {"dayOfMonth":1,"hour":2,"minute":0}',
    at: calendar.zone,
  });
}
