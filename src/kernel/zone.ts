import { Temporal } from 'temporal-polyfill';
import { OnceperError } from './error.ts';

/**
 * The zone, if it is a name of the IANA database spelled as there. Offsets such as `+08:00` are refused (they know no
 * daylight saving), and so is another spelling, which Temporal's server and PostgreSQL would not both accept.
 *
 * @throws OnceperError `unknown_zone`.
 */
export function checkZone(zone: string): string {
  const known = knownAs(zone);
  if (known === zone) return zone;
  throw new OnceperError({
    code: 'unknown_zone',
    message: `'${zone}' is not a time zone of the IANA database`,
    remedy: known === null ? 'name a zone such as Asia/Shanghai, Europe/London or UTC' : `write '${known}'`,
    at: zone,
  });
}

const checked = new Map<string, string | null>();

function knownAs(zone: string): string | null {
  const before = checked.get(zone);
  if (before !== undefined) return before;
  const known = /^[A-Za-z]/.test(zone) ? spelling(zone) : null;
  checked.set(zone, known);
  return known;
}

function spelling(zone: string): string | null {
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(zone).timeZoneId;
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/**
 * The first instant from which on the zone's clock never reads before `local`. Where the clock is put forward over
 * `local` that is the jump itself; where it is put back from after `local` to before it (St John's did so at 00:01) it
 * is the second occurrence, so that no local time of a period comes after the period's end. Never decreases as `local`
 * grows, hence periods never overlap and leave nothing between them.
 */
export function boundary(local: Temporal.PlainDateTime, zone: string): Temporal.Instant {
  const earlier = local.toZonedDateTime(zone, { disambiguation: 'earlier' });
  const later = local.toZonedDateTime(zone, { disambiguation: 'later' });
  if (earlier.equals(later)) return earlier.toInstant();
  const jump = earlier.getTimeZoneTransition('next');
  if (jump === null) throw new RangeError(`${zone} has no transition after ${earlier.toString()}`);
  const isRepeated = earlier.toPlainDateTime().equals(local);
  // Put back to exactly `local`: what came before the jump already read it or later, so the first occurrence holds.
  const isPutBackToLocal = isRepeated && jump.equals(later);
  return (isPutBackToLocal ? earlier : isRepeated ? later : jump).toInstant();
}
