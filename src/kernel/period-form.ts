import { Temporal } from 'temporal-polyfill';
import { OnceperError } from './error.ts';
import type { InZone } from './zone-clock.ts';

type PeriodKind = 'year' | 'month' | 'week' | 'day' | 'hour' | 'fiscal-year' | 'fiscal-month';

/**
 * What divides a job's time into periods: the kind, the IANA zone whose clock marks the boundaries, and for the fiscal
 * kinds the month (1 to 12) in which the fiscal year starts.
 */
export interface PeriodCalendar extends InZone {
  readonly kind: PeriodKind;
  readonly fiscalStartMonth?: number;
}

/**
 * How one kind of period is written and laid out on the local calendar, without any zone. A period is handled as the
 * local date and time at which it starts.
 */
export interface PeriodForm {
  /** What a person should write, for the remedy of an error. */
  readonly expected: string;
  /** The start of the period that a text names, or null for a text that names none. */
  readonly start: (text: string, firstMonth: number) => Temporal.PlainDateTime | null;
  /** The start of the period that a local time lies in. */
  readonly floor: (local: Temporal.PlainDateTime, firstMonth: number) => Temporal.PlainDateTime;
  readonly format: (start: Temporal.PlainDateTime, firstMonth: number) => string;
  readonly length: Temporal.DurationLike;
}

const midnight = { hour: 0, minute: 0, second: 0, millisecond: 0, microsecond: 0, nanosecond: 0 };

/** Years 1000 to 2999: every instant keeps four digits, and `0206-09` is a slip of the pen rather than a period. */
const isoForm = /^[12]\d{3}(?:-\d{2}(?:-\d{2}(?:T\d{2})?)?)?$/;
const weekForm = /^([12]\d{3})-W(\d{2})$/;
const fiscalForm = /^FY([12]\d{3})(?:-P(\d{2}))?$/;

const forms: Readonly<Record<PeriodKind, PeriodForm>> = {
  year: {
    expected: 'a year, YYYY, for example 2026',
    start: (text) => isoStart(text, 'YYYY', '-01-01T00'),
    floor: (local) => local.with({ month: 1, day: 1, ...midnight }),
    format: (start) => start.toString().slice(0, 'YYYY'.length),
    length: { years: 1 },
  },
  month: {
    expected: 'a month, YYYY-MM, for example 2026-09',
    start: (text) => isoStart(text, 'YYYY-MM', '-01T00'),
    floor: (local) => local.with({ day: 1, ...midnight }),
    format: (start) => start.toString().slice(0, 'YYYY-MM'.length),
    length: { months: 1 },
  },
  week: {
    expected: 'an ISO week, YYYY-Www with 52 or 53 weeks a year, for example 2026-W39',
    start: weekStart,
    floor: (local) => local.subtract({ days: local.dayOfWeek - 1 }).with(midnight),
    format: formatWeek,
    length: { weeks: 1 },
  },
  day: {
    expected: 'a date, YYYY-MM-DD, for example 2026-09-30',
    start: (text) => isoStart(text, 'YYYY-MM-DD', 'T00'),
    floor: (local) => local.with(midnight),
    format: (start) => start.toString().slice(0, 'YYYY-MM-DD'.length),
    length: { days: 1 },
  },
  hour: {
    expected: 'a local hour, YYYY-MM-DDTHH, for example 2026-09-30T14',
    start: (text) => isoStart(text, 'YYYY-MM-DDTHH', ''),
    floor: (local) => local.with({ ...midnight, hour: local.hour }),
    format: (start) => start.toString().slice(0, 'YYYY-MM-DDTHH'.length),
    length: { hours: 1 },
  },
  'fiscal-year': {
    expected: 'a fiscal year, FYYYYY, named by the calendar year in which it ends, for example FY2027',
    start: (text, firstMonth) => fiscalStart(text, firstMonth, 'FYYYYY'),
    floor: (local, firstMonth) => {
      const months = (local.month - firstMonth + 12) % 12;
      return local.with({ day: 1, ...midnight }).subtract({ months });
    },
    format: (start, firstMonth) => formatFiscal(start, firstMonth).slice(0, 'FYYYYY'.length),
    length: { years: 1 },
  },
  'fiscal-month': {
    expected: 'a fiscal month, FYYYYY-Pnn with 01 to 12, for example FY2027-P03',
    start: (text, firstMonth) => fiscalStart(text, firstMonth, 'FYYYYY-Pnn'),
    floor: (local) => local.with({ day: 1, ...midnight }),
    format: formatFiscal,
    length: { months: 1 },
  },
};

/** The form of the calendar's kind and the month that starts its fiscal year (1 for the kinds without one). */
export function formOf(calendar: PeriodCalendar): { readonly form: PeriodForm; readonly firstMonth: number } {
  const form = forms[calendar.kind];
  const isFiscal = calendar.kind === 'fiscal-year' || calendar.kind === 'fiscal-month';
  if (!isFiscal) return { form, firstMonth: 1 };
  const firstMonth = calendar.fiscalStartMonth;
  if (firstMonth !== undefined && Number.isInteger(firstMonth) && firstMonth >= 1 && firstMonth <= 12) {
    return { form, firstMonth };
  }
  throw new OnceperError({
    code: 'malformed_calendar',
    message: `a calendar of kind ${calendar.kind} needs fiscalStartMonth, 1 to 12; it has ${firstMonth}`,
    remedy: 'state the month in which the fiscal year starts, for example 4 for April',
    at: calendar.zone,
  });
}

function isoStart(text: string, form: string, rest: string): Temporal.PlainDateTime | null {
  if (text.length !== form.length || !isoForm.test(text)) return null;
  return existing(() => Temporal.PlainDateTime.from(`${text}${rest}`));
}

function weekStart(text: string): Temporal.PlainDateTime | null {
  const [, year, week] = weekForm.exec(text) ?? [];
  if (year === undefined || week === undefined) return null;
  // By ISO 8601 the week that holds 4 January is the first.
  const inFirstWeek = Temporal.PlainDateTime.from(`${year}-01-04T00`);
  const start = inFirstWeek.add({ days: 1 - inFirstWeek.dayOfWeek + 7 * (Number(week) - 1) });
  return formatWeek(start) === text ? start : null;
}

function formatWeek(start: Temporal.PlainDateTime): string {
  // The week's year is not always the calendar year of its Monday, but always that of its Thursday.
  const thursday = start.add({ days: 4 - start.dayOfWeek });
  const week = Math.ceil(thursday.dayOfYear / 7);
  return `${thursday.toString().slice(0, 'YYYY'.length)}-W${String(week).padStart(2, '0')}`;
}

function fiscalStart(text: string, firstMonth: number, form: string): Temporal.PlainDateTime | null {
  const [, year, month = '01'] = fiscalForm.exec(text) ?? [];
  if (year === undefined || text.length !== form.length) return null;
  const index = Number(month);
  if (index < 1 || index > 12) return null;
  const january = Temporal.PlainDateTime.from(`${year}-01-01T00`);
  return january.subtract({ years: firstMonth === 1 ? 0 : 1 }).add({ months: firstMonth - 1 + index - 1 });
}

function formatFiscal(start: Temporal.PlainDateTime, firstMonth: number): string {
  const index = (start.month - firstMonth + 12) % 12;
  // The year of the fiscal year's last month.
  const last = start.add({ months: 11 - index });
  return `FY${last.toString().slice(0, 'YYYY'.length)}-P${String(index + 1).padStart(2, '0')}`;
}

function existing(read: () => Temporal.PlainDateTime): Temporal.PlainDateTime | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
