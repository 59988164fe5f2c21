import { Temporal } from 'temporal-polyfill';
import { checkCalendar, LAST_YEAR, matchOf, type ScheduleCalendar, valuesOf } from './calendar.ts';
import { instantOf } from './instant.ts';
import type { Instant } from './sql.ts';
import { boundary, clockIn, instantText, readerOf, readingAt, secondOf, type ZoneClock } from './zone-clock.ts';

/**
 * An instant at which a calendar fires, and how it came by it: as its fields say (`calendar`); after the clock jumped over the
 * stated time (`gap`); at one of two readings of it (`repeated`); on another day than the stated, which is none of business (`moved`).
 */
export interface Firing {
  readonly at: Instant;
  readonly how: 'calendar' | 'gap' | 'repeated' | 'moved';
  /** The local time that the calendar states, `2026-03-28T23:30:00`, where the clock jumps over it. */
  readonly stated?: string;
}

/**
 * The firings after `after` and up to `until`, in order. A stated time that the clock jumps over fires at the first instant after
 * the jump, unless the calendar fires anyway when the lost time would have come (an hourly one does), or says `gap: skip`; a
 * time that occurs twice fires once, by `repeated`. `lost` are the firings that gaps were skipped for.
 *
 * @throws OnceperError `malformed_calendar`, `unknown_zone`.
 */
export function firingsBetween(
  calendar: ScheduleCalendar,
  after: Instant,
  until: Instant,
): { readonly firings: readonly Firing[]; readonly lost: readonly Firing[] } {
  checkCalendar(calendar);
  const clock = clockIn(calendar);
  const [from, to] = [instantOf(after), instantOf(until)];
  const found: Found[] = [];
  // A jump over a whole day puts a firing off to the next date, and a clock put back may read a date's end again on the next.
  const last = readingAt(to, clock).toPlainDate().add({ days: 1 });
  let date = readingAt(from, clock).toPlainDate().subtract({ days: 2 });
  for (; Temporal.PlainDate.compare(date, last) <= 0 && date.year <= LAST_YEAR; date = date.add({ days: 1 })) {
    const match = matchOf(calendar, date);
    if (match !== 'no') found.push(...firingsOn(calendar, clock, date, match));
  }
  // Firings are whole seconds: what comes after an instant comes after the second in which that lies.
  const inside = distinct(found.filter(({ second }) => second > secondOf(from) && second <= secondOf(to)));
  const isLost = ({ how }: Firing) => how === 'gap' && calendar.gap === 'skip';
  const firings = inside.map(({ second, ...firing }): Firing => ({ at: instantText(second), ...firing }));
  return { firings: firings.filter((one) => !isLost(one)), lost: firings.filter(isLost) };
}

/** A firing by its second of the epoch. */
interface Found extends Omit<Firing, 'at'> {
  readonly second: number;
}

/** The first `count` firings strictly after `after`, in order; fewer where the calendar ends with the year 2100. */
export function firingsAfter(calendar: ScheduleCalendar, after: Instant, count: number): readonly Firing[] {
  const end = Temporal.Instant.from(`${LAST_YEAR + 1}-01-03T00:00:00Z`);
  const found: Firing[] = [];
  let from = instantOf(after);
  for (let days = 32; found.length < count && Temporal.Instant.compare(from, end) < 0; days *= 2) {
    const to = from.add({ hours: 24 * days });
    found.push(...firingsBetween(calendar, from.toString(), to.toString()).firings);
    from = to;
  }
  return found.slice(0, count);
}

/** True where the zone's clock reads a time of the calendar at the instant, at both readings of a repeated one. */
export function readsTimeOf(calendar: ScheduleCalendar, instant: Instant): boolean {
  checkCalendar(calendar);
  const local = readingAt(instantOf(instant), clockIn(calendar));
  return (
    local.equals(local.with(ON_THE_MINUTE)) &&
    statesTime(calendar, local) &&
    matchOf(calendar, local.toPlainDate()) !== 'no'
  );
}

const ON_THE_MINUTE = { second: 0, millisecond: 0, microsecond: 0, nanosecond: 0 };
const HOURS = Array.from({ length: 24 }, (_, hour) => hour);

function statesTime({ hour = HOURS, minute }: ScheduleCalendar, local: Temporal.PlainDateTime): boolean {
  return valuesOf(hour).includes(local.hour) && valuesOf(minute).includes(local.minute);
}

/** The times of day that a calendar states, in seconds. */
export function timesOfDay({ hour = HOURS, minute }: ScheduleCalendar): number[] {
  return valuesOf(hour).flatMap((h) => valuesOf(minute).map((m) => h * 3_600 + m * 60));
}

function firingsOn(
  calendar: ScheduleCalendar,
  clock: ZoneClock,
  date: Temporal.PlainDate,
  match: 'stated' | 'moved',
): Found[] {
  const midnight = date.toPlainDateTime();
  const secondsAt = readerOf(midnight, clock);
  return timesOfDay(calendar).flatMap((time): Found[] => {
    const readings = secondsAt(time);
    const [first] = readings;
    const last = readings.at(-1);
    if (first === undefined || last === undefined) return afterGap(calendar, clock, midnight.add({ seconds: time }));
    if (readings.length === 1) return [{ second: first, how: match === 'moved' ? 'moved' : 'calendar' }];
    return [{ second: calendar.repeated === 'second' ? last : first, how: 'repeated' }];
  });
}

/** Nothing where the calendar states the time that the clock reads when the lost one would have come. */
function afterGap(calendar: ScheduleCalendar, clock: ZoneClock, local: Temporal.PlainDateTime): Found[] {
  const second = boundary(local, clock);
  const jumpedBy = clock.offsetAt(second) - clock.offsetAt(second - 1);
  const later = local.add({ seconds: jumpedBy });
  if (statesTime(calendar, later) && matchOf(calendar, later.toPlainDate()) !== 'no') return [];
  return [{ second, how: 'gap', stated: local.toString() }];
}

function distinct(found: readonly Found[]): Found[] {
  const ordered = found.toSorted((a, b) => a.second - b.second);
  return ordered.filter(({ second }, index) => ordered[index - 1]?.second !== second);
}
