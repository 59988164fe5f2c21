import { Temporal } from 'temporal-polyfill';
import type { ScheduleCalendar } from '../../src/kernel/calendar.ts';

/*
 * A small model of what a schedule means, by looking at every quarter of an hour of a stretch of time and at nothing else: no
 * transition, no disambiguation, no arithmetic of periods. It shares no code with src, and reads the clock through Temporal's
 * own zoned times. Stretches must lie where clocks change at quarters of an hour, and calendars must state such minutes.
 */

/** A quarter of an hour: its instant in minutes of the epoch, and the local time as minutes since 1970 on the zone's clock. */
interface Quarter {
  readonly at: number;
  readonly local: number;
}

const QUARTER = 15;
const DAY = 1_440;

/** All quarters from one UTC date to another, the latter excluded. */
export function quartersOf(zone: string, fromDay: number, toDay: number): Quarter[] {
  const quarters: Quarter[] = [];
  for (let at = fromDay * DAY; at < toDay * DAY; at += QUARTER) quarters.push({ at, local: at + offsetAt(zone, at) });
  return quarters;
}

/** Two equal offsets a day apart are taken for the whole day: no clock changes twice in one. */
function offsetAt(zone: string, at: number): number {
  const day = Math.floor(at / DAY);
  const [start, end] = [probe(zone, day * DAY), probe(zone, (day + 1) * DAY)];
  return start === end ? start : probe(zone, at);
}

const probed = new Map<string, number>();

function probe(zone: string, at: number): number {
  const id = `${zone} ${at}`;
  let offset = probed.get(id);
  if (offset === undefined) {
    offset = Temporal.Instant.fromEpochMilliseconds(at * 60_000).toZonedDateTimeISO(zone).offsetNanoseconds / 60e9;
    probed.set(id, offset);
  }
  return offset;
}

/** The first instant after the last one that reads an earlier local time: there the period that begins at `local` begins. */
export function boundaryOf(quarters: readonly Quarter[], local: number): number {
  const last = quarters.findLastIndex((quarter) => quarter.local < local);
  return quarters[last + 1]?.at ?? Number.NaN;
}

interface ModelFiring {
  readonly at: number;
  /** The local time that was stated. */
  readonly local: number;
  readonly isGap: boolean;
}

/** The firings whose local dates lie from one day number to another, by reading every quarter. */
export function firingsOf(
  calendar: ScheduleCalendar,
  quarters: readonly Quarter[],
  days: readonly number[],
): ModelFiring[] {
  const found = new Map<number, ModelFiring>();
  const readings = new Map<number, [first: number, last: number]>();
  for (const { at, local } of quarters) readings.set(local, [readings.get(local)?.[0] ?? at, at]);
  const states = (local: number) => statesTime(calendar, local) && firesOn(calendar, Math.floor(local / DAY));
  for (const day of days.filter((one) => firesOn(calendar, one))) {
    for (let local = day * DAY; local < (day + 1) * DAY; local += QUARTER) {
      if (!statesTime(calendar, local)) continue;
      const chosen = readings.get(local)?.[calendar.repeated === 'second' ? 1 : 0];
      if (chosen !== undefined) {
        found.set(chosen, { at: chosen, local, isGap: false });
        continue;
      }
      const jump = boundaryOf(quarters, local);
      const index = quarters.findIndex(({ at }) => at === jump);
      const gap = (quarters[index]?.local ?? 0) - ((quarters[index - 1]?.local ?? 0) + QUARTER);
      if (!states(local + gap) && !found.has(jump)) found.set(jump, { at: jump, local, isGap: true });
    }
  }
  return [...found.values()].toSorted((a, b) => a.at - b.at);
}

function statesTime({ hour, minute }: ScheduleCalendar, local: number): boolean {
  const inDay = ((local % DAY) + DAY) % DAY;
  return has(minute, inDay % 60) && (hour === undefined || has(hour, Math.floor(inDay / 60)));
}

function has(field: number | readonly number[], ...values: number[]): boolean {
  const list = typeof field === 'number' ? [field] : field;
  return values.some((value) => list.includes(value));
}

const dateOf = (day: number) => new Date(day * 86_400_000);
const weekdayOf = (day: number) => ((((day + 3) % 7) + 7) % 7) + 1;

function isBusiness({ businessDays }: ScheduleCalendar, day: number): boolean {
  const weekend = businessDays?.weekend ?? [6, 7];
  return (
    !weekend.includes(weekdayOf(day)) &&
    businessDays?.holidays.includes(dateOf(day).toISOString().slice(0, 10)) !== true
  );
}

function fieldsMatch(calendar: ScheduleCalendar, day: number): boolean {
  const date = dateOf(day);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const first = Date.UTC(year, month, 1) / 86_400_000;
  const length = Date.UTC(year, month + 1, 1) / 86_400_000 - first;
  const all = Array.from({ length }, (_, index) => first + index);
  const { month: months, dayOfMonth, dayOfWeek, nthDayOfWeek, nthBusinessDay } = calendar;
  const places = (list: readonly number[]) =>
    list.includes(day) ? [list.indexOf(day) + 1, list.indexOf(day) - list.length] : [];
  return (
    (months === undefined || has(months, month + 1)) &&
    (dayOfMonth === undefined || has(dayOfMonth, ...places(all))) &&
    (dayOfWeek === undefined || has(dayOfWeek, weekdayOf(day))) &&
    (nthDayOfWeek === undefined ||
      has(nthDayOfWeek, ...places(all.filter((one) => weekdayOf(one) === weekdayOf(day))))) &&
    (nthBusinessDay === undefined || has(nthBusinessDay, ...places(all.filter((one) => isBusiness(calendar, one)))))
  );
}

function firesOn(calendar: ScheduleCalendar, day: number): boolean {
  if (calendar.except?.includes(dateOf(day).toISOString().slice(0, 10)) === true) return false;
  if (calendar.businessDays === undefined) return fieldsMatch(calendar, day);
  if (!isBusiness(calendar, day)) return false;
  if (fieldsMatch(calendar, day)) return true;
  const step = { skip: 0, next: -1, previous: 1 }[calendar.businessDays.otherwise];
  for (let other = day + step; step !== 0 && !isBusiness(calendar, other); other += step) {
    if (fieldsMatch(calendar, other)) return true;
  }
  return false;
}
