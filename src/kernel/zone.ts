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
