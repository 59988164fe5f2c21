import type { Temporal } from 'temporal-polyfill';

/**
 * The instants at which Temporal's server (compared with 1.32) fires on a date for a calendar's hour and minute. Away
 * from changes of the clock that is the one instant at which the clock reads them. At a change the server reasons in
 * whole hours with Go's calendar, and so must whoever expects a run from it:
 *
 * - a time that the clock jumps over does not fire, unless the jump is so short that the moved time has the same hour;
 * - a repeated time fires twice west of Greenwich, and there and east of it at its second occurrence only: Go looks up
 *   the offset as if the local time were UTC, and so finds the one before the change in the west, after it in the east.
 */
export function firings(date: Temporal.PlainDate, hour: number, minute: number, zone: string): Temporal.Instant[] {
  const startOfHour = date.toPlainDateTime({ hour });
  const first = resolvedByGo(startOfHour.with({ minute }), zone);
  const local = first.toZonedDateTimeISO(zone);
  // A whole day that is left out would move the time to the day before, which has fired already.
  if (local.hour !== hour || !local.toPlainDate().equals(date)) return [];
  const hourLater = first.add({ hours: 1 });
  const start = resolvedByGo(startOfHour, zone);
  const next = resolvedByGo(startOfHour.add({ hours: 1 }), zone);
  const isLongerThanHour = next.since(start, { largestUnit: 'hours' }).total('hours') > 1;
  const isSecondCopy = first.subtract({ hours: 1 }).toZonedDateTimeISO(zone).hour === hour;
  return isLongerThanHour && !isSecondCopy ? [first, hourLater] : [first];
}

/** What Go's time.Date makes of a local time that a change of the clock repeats or leaves out. */
function resolvedByGo(local: Temporal.PlainDateTime, zone: string): Temporal.Instant {
  const earlier = local.toZonedDateTime(zone, { disambiguation: 'earlier' });
  const later = local.toZonedDateTime(zone, { disambiguation: 'later' });
  if (earlier.equals(later)) return earlier.toInstant();
  const change = earlier.getTimeZoneTransition('next');
  const asIfUtc = local.toZonedDateTime('UTC').epochMilliseconds;
  const isBeforeChange = change !== null && asIfUtc < change.epochMilliseconds;
  return (isBeforeChange ? earlier : later).toInstant();
}
