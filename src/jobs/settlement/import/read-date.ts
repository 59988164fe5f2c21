import { OnceperError } from '../../../kernel/error.ts';
import { normaliseInstant } from '../../../kernel/instant.ts';
import { type PeriodCalendar, periodBounds, periodOfDate } from '../../../kernel/period.ts';
import type { Instant } from '../../../kernel/sql.ts';
import { localDate } from '../../../kernel/zone-clock.ts';

/** When a transaction occurred: always a local date; the instant too where the source knows it. */
interface Occurred {
  readonly on: string;
  readonly at: Instant | null;
}

/** Reads `2026-09-30`, or an instant with its offset; throws OnceperError with the reason to refuse the row. */
export type ReadDate = (text: string) => Occurred;

const dateForm = /^\d{4}-\d{2}-\d{2}$/;

/** Dates of a file repeat; a file with more different ones than this is no settlement of ours, but must not fill memory. */
const datesRemembered = 10_000;

/**
 * A reader of dates for one file. A date is kept as it is written, an instant also gets its date by the clock of the job's
 * zone. Refused are dates that do not exist, dates before the job's first period, and dates after `today` in that zone.
 */
export function dateReader(of: { calendar: PeriodCalendar; first: string; today: string }): ReadDate {
  const { startsOn } = periodBounds(of.first, of.calendar);
  const known = new Set<string>();
  const checked = (on: string): string => {
    if (on < startsOn)
      throw refusedDate(on, `lies before ${startsOn}, where the job's first period ${of.first} starts`);
    if (on > of.today) throw refusedDate(on, `lies after today, ${of.today} in ${of.calendar.zone}`);
    return on;
  };
  return (text) => {
    if (known.has(text)) return { on: text, at: null };
    if (!dateForm.test(text)) return readInstant(text, of.calendar, checked);
    periodOfDate(text, of.calendar);
    if (known.size === datesRemembered) known.clear();
    known.add(checked(text));
    return { on: text, at: null };
  };
}

function readInstant(text: string, zone: PeriodCalendar, checked: (on: string) => string): Occurred {
  if (!/^\d{4}-\d{2}-\d{2}[Tt ]/.test(text))
    throw refusedDate(text, 'is neither YYYY-MM-DD nor an instant with its offset');
  const at = normaliseInstant(text);
  return { on: checked(localDate(at, zone)), at };
}

function refusedDate(text: string, reason: string): OnceperError {
  return new OnceperError({
    code: 'refused_date',
    message: `date '${text}' ${reason}`,
    remedy: 'correct the row at its source',
    at: text,
  });
}
