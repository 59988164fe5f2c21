import { Temporal } from 'temporal-polyfill';
import { OnceperError } from './error.ts';
import type { Instant } from './sql.ts';

/** Date, time to the minute at least, at most microseconds (what PostgreSQL keeps), and an offset or Z. */
const instantForm = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(?::[0-5]\d(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d{2}(?::?\d{2})?)$/;

/**
 * An instant in the one form that crosses our boundaries, `2026-09-30T18:00:00Z`, with a fraction only when it is not
 * zero. Accepts ISO 8601 with any offset, and PostgreSQL's output of a timestamptz.
 *
 * @throws OnceperError `malformed_instant` without an offset, for a date or time that does not exist, a leap second,
 * more than microseconds, or a year of more than four digits.
 */
export function normaliseInstant(text: string): Instant {
  return instantOf(text).toString();
}

/** The instant that a text of normaliseInstant's forms means; for calculations inside the kernel. */
export function instantOf(text: string): Temporal.Instant {
  if (!instantForm.test(text)) throw malformedInstant(text);
  try {
    return Temporal.Instant.from(text);
  } catch (error) {
    if (error instanceof RangeError) throw malformedInstant(text, error);
    throw error;
  }
}

/** -1, 0 or 1 as `a` is before, at or after `b`. Instants must not be compared as texts: `00.5Z` sorts before `00Z`. */
export function compareInstants(a: Instant, b: Instant): -1 | 0 | 1 {
  const order = Temporal.Instant.compare(instantOf(a), instantOf(b));
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

/** The instant that lies so much later; whole hours, minutes and seconds, which no zone can bend. */
export function instantPlus(
  instant: Instant,
  time: {
    readonly hours?: number;
    readonly minutes?: number;
    readonly seconds?: number;
    readonly microseconds?: number;
  },
): Instant {
  return instantOf(instant).add(time).toString();
}

function malformedInstant(text: string, cause?: unknown): OnceperError {
  return new OnceperError({
    code: 'malformed_instant',
    message: `'${text}' is not an instant`,
    remedy: 'write a date and time with its offset from UTC, for example 2026-09-30T18:00:00Z',
    at: text,
    cause,
  });
}
