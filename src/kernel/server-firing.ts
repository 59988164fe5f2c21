import { Temporal } from 'temporal-polyfill';
import { checkCalendar, LAST_YEAR, matchOf, type ScheduleCalendar } from './calendar.ts';
import { firingsBetween, timesOfDay } from './firing.ts';
import { compareInstants, instantOf } from './instant.ts';
import type { Instant } from './sql.ts';
import { clockIn, readingAt, secondsOf, type ZoneClock } from './zone-clock.ts';

/**
 * The instants at which Temporal's server (compared with 1.32) fires for a plain calendar, after `after` and up to `until`. Away
 * from changes of the clock they are the calendar's own. At a change the server reasons in whole hours with Go's calendar:
 *
 * - a time that the clock jumps over does not fire, unless the jump is so short that the moved time has the same hour;
 * - a repeated time fires twice west of Greenwich, and there and east of it at its second occurrence only: Go looks up
 *   the offset as if the local time were UTC, and so finds the one before the change in the west, after it in the east.
 */
export function serverFirings(calendar: ScheduleCalendar, after: Instant, until: Instant): readonly Instant[] {
  checkCalendar(calendar);
  const clock = clockIn(calendar);
  const last = readingAt(instantOf(until), clock).toPlainDate().add({ days: 1 });
  const found: string[] = [];
  let date = readingAt(instantOf(after), clock).toPlainDate().subtract({ days: 1 });
  for (; Temporal.PlainDate.compare(date, last) <= 0 && date.year <= LAST_YEAR; date = date.add({ days: 1 })) {
    if (matchOf(calendar, date) === 'no') continue;
    const midnight = date.toPlainDateTime();
    const locals = timesOfDay(calendar).map((time) => midnight.add({ seconds: time }));
    found.push(...locals.flatMap((local) => firingsOf(local, clock).map((at) => at.toString())));
  }
  const inside = found.filter((at) => compareInstants(at, after) > 0 && compareInstants(at, until) <= 0);
  return [...new Set(inside)].toSorted(compareInstants);
}

/** Where a zone's clock changes between the instants, and the server would fire otherwise there than the calendar says: when. */
export function firstServerDifference(calendar: ScheduleCalendar, after: Instant, until: Instant): Instant | null {
  const [from, to] = [after, until].map((at) => Math.floor(instantOf(at).epochMilliseconds / 1_000)) as [
    number,
    number,
  ];
  for (const { at } of clockIn(calendar).transitionsBetween(from, to)) {
    const [start, end] = [-DAYS, DAYS].map((by) =>
      Temporal.Instant.fromEpochMilliseconds((at + by) * 1_000).toString(),
    ) as [Instant, Instant];
    const ours = firingsBetween(calendar, start, end).firings.map((firing) => firing.at);
    const theirs = serverFirings(calendar, start, end);
    const odd = [...ours, ...theirs].find((one) => !ours.includes(one) || !theirs.includes(one));
    if (odd !== undefined) return odd;
  }
  return null;
}

/** What lies further from a change is not touched by it. */
const DAYS = 2 * 86_400;

function firingsOf(local: Temporal.PlainDateTime, clock: ZoneClock): Temporal.Instant[] {
  const { hour } = local;
  const startOfHour = local.with({ minute: 0 });
  const first = resolvedByGo(local, clock);
  const reading = readingAt(first, clock);
  // A whole day that is left out would move the time to the day before, which has fired already.
  if (reading.hour !== hour || !reading.toPlainDate().equals(local.toPlainDate())) return [];
  const start = resolvedByGo(startOfHour, clock);
  const next = resolvedByGo(startOfHour.add({ hours: 1 }), clock);
  const isLongerThanHour = next.since(start, { largestUnit: 'hours' }).total('hours') > 1;
  const isSecondCopy = readingAt(first.subtract({ hours: 1 }), clock).hour === hour;
  return isLongerThanHour && !isSecondCopy ? [first, first.add({ hours: 1 })] : [first];
}

/** What Go's time.Date makes of a local time: the offset is looked up as if it were UTC, and once more at what comes of that. */
function resolvedByGo(local: Temporal.PlainDateTime, clock: ZoneClock): Temporal.Instant {
  const second = secondsOf(local);
  const guess = second - clock.offsetAt(second);
  return Temporal.Instant.fromEpochMilliseconds((second - clock.offsetAt(guess)) * 1_000);
}
