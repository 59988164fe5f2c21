import type {
  CalendarSpec,
  CalendarSpecDescription,
  ScheduleDescription,
  ScheduleOptions,
  ScheduleUpdateOptions,
} from '@temporalio/client';
import { Temporal } from 'temporal-polyfill';
import type { JobRule } from '../jobs/rule.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Instant } from '../kernel/sql.ts';

/** What a job's schedule must be: the code owns it, whole. */
export interface SchedulePlan {
  readonly job: string;
  readonly rule: JobRule;
  readonly taskQueue: string;
  /** One more instant beside the calendar, in whole seconds; gone with the next apply that does not name it. */
  readonly oneOff?: Instant;
}

/** Longer than a year, so that a yearly job survives an outage of any length that people would let last. */
export const CATCH_UP_DAYS = 400;
const DAY_MS = 86_400_000;

const MONTHS = [
  'JANUARY',
  'FEBRUARY',
  'MARCH',
  'APRIL',
  'MAY',
  'JUNE',
  'JULY',
  'AUGUST',
  'SEPTEMBER',
  'OCTOBER',
  'NOVEMBER',
  'DECEMBER',
] as const;
const DAYS = ['MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY', 'SUNDAY'] as const;

/**
 * The options of a job's schedule. ALLOW_ALL, because with any other policy Temporal drops ticks while one is open, and
 * order is admission's; no jitter, because the nominal time must be the calendar's.
 */
export function scheduleOptions(
  plan: SchedulePlan,
): Omit<ScheduleOptions, 'scheduleId' | 'state' | 'memo'> & Omit<ScheduleUpdateOptions, 'state'> {
  const { job, rule, taskQueue, oneOff } = plan;
  return {
    spec: {
      timezone: rule.zone,
      calendars: oneOff === undefined ? [calendarOf(rule)] : [calendarOf(rule), instantCalendar(oneOff, rule.zone)],
    },
    action: { type: 'startWorkflow', workflowType: 'tick', workflowId: job, taskQueue, args: [{ job }] },
    policies: { overlap: 'ALLOW_ALL', catchupWindow: CATCH_UP_DAYS * DAY_MS, pauseOnFailure: false },
  };
}

function calendarOf({ calendar }: JobRule): CalendarSpec {
  const { month, dayOfMonth, dayOfWeek, hour, minute } = calendar;
  const monthName = month === undefined ? undefined : MONTHS[month - 1];
  const dayName = dayOfWeek === undefined ? undefined : DAYS[dayOfWeek - 1];
  return {
    ...(monthName === undefined ? {} : { month: monthName }),
    ...(dayOfMonth === undefined ? {} : { dayOfMonth }),
    ...(dayName === undefined ? {} : { dayOfWeek: dayName }),
    // Temporal takes an hour that is not stated for midnight; ours is every hour.
    hour: hour ?? '*',
    minute,
    second: 0,
  };
}

function instantCalendar(instant: Instant, zone: string): CalendarSpec {
  const at = Temporal.Instant.from(instant);
  if (at.epochMilliseconds % 1_000 !== 0) {
    throw new OnceperError({
      code: 'malformed_instant',
      message: `a schedule fires in whole seconds, and ${instant} is none`,
      remedy: 'round it up to a second',
      at: instant,
    });
  }
  const local = at.toZonedDateTimeISO(zone);
  const month = MONTHS[local.month - 1] ?? 'JANUARY';
  return {
    year: local.year,
    month,
    dayOfMonth: local.day,
    hour: local.hour,
    minute: local.minute,
    second: local.second,
  };
}

/**
 * Where a schedule is not what the plan says: one sentence a field, none when it is. Pause, note and remaining actions are
 * the operator's and are no drift.
 */
export function driftOf(plan: SchedulePlan, found: ScheduleDescription): string[] {
  const wanted = factsOf(plan);
  const is = foundFacts(found);
  return Object.entries(wanted).flatMap(([field, value]) =>
    is[field] === value ? [] : [`${field} is ${is[field] ?? 'absent'}, and should be ${value}`],
  );
}

type Facts = Readonly<Record<string, string>>;

function factsOf(plan: SchedulePlan): Facts {
  const { spec, action } = scheduleOptions(plan);
  return {
    zone: plan.rule.zone,
    calendar: (spec.calendars ?? []).map(calendarText).sort().join('; '),
    'other times': 'none',
    jitter: 'none',
    overlap: 'ALLOW_ALL',
    'catch-up window': `${CATCH_UP_DAYS} days`,
    'pause on failure': 'off',
    workflow: `tick ${plan.job}`,
    'task queue': plan.taskQueue,
    arguments: JSON.stringify(action.args),
    'action options': 'none',
  };
}

function foundFacts({ spec, action, policies }: ScheduleDescription): Facts {
  const others = [spec.intervals, spec.skip].filter((list) => (list ?? []).length > 0).length;
  const bounds = [spec.startAt, spec.endAt].filter((bound) => bound !== undefined).length;
  const options = (['retry', 'workflowExecutionTimeout', 'workflowRunTimeout', 'workflowTaskTimeout'] as const).filter(
    (option) => action[option] !== undefined,
  );
  return {
    zone: spec.timezone ?? 'UTC',
    calendar: (spec.calendars ?? []).map(calendarText).sort().join('; '),
    'other times': others + bounds === 0 ? 'none' : 'intervals, exceptions or an end',
    jitter: (spec.jitter ?? 0) === 0 ? 'none' : `${spec.jitter} ms`,
    overlap: policies.overlap ?? 'absent',
    'catch-up window': `${policies.catchupWindow / DAY_MS} days`,
    'pause on failure': policies.pauseOnFailure ? 'on' : 'off',
    workflow: `${action.workflowType} ${action.workflowId}`,
    'task queue': action.taskQueue,
    arguments: JSON.stringify(action.args ?? []),
    'action options': options.length === 0 ? 'none' : options.join(', '),
  };
}

/** The fields of a calendar with the ranges that mean "any", which the server spells out. */
const FIELDS = [
  ['year', null, null],
  ['month', 'JANUARY', 'DECEMBER'],
  ['dayOfMonth', 1, 31],
  ['dayOfWeek', 'SUNDAY', 'SATURDAY'],
  ['hour', 0, 23],
  ['minute', 0, 59],
  ['second', 0, 59],
] as const;

/** A calendar as text, the same for what we send and for what the server gives back: `dayOfMonth 1, hour 2, minute 0`. */
export function calendarText(calendar: CalendarSpec | CalendarSpecDescription): string {
  return FIELDS.flatMap(([field, first, last]) => {
    const ranges = rangesOf(calendar[field]).filter(({ start, end }) => start !== first || end !== last);
    if (ranges.length === 0) return [];
    const texts = ranges.map(({ start, end, step }) =>
      start === end ? String(start) : `${start} to ${end}${step === 1 ? '' : ` by ${step}`}`,
    );
    return [`${field} ${texts.join(' and ')}`];
  }).join(', ');
}

interface Range {
  readonly start: unknown;
  readonly end: unknown;
  readonly step: number;
}

/** What is sent is a value or nothing, what comes back is a list of ranges. */
function rangesOf(value: unknown): Range[] {
  if (value === undefined || value === '*') return [];
  const list: unknown[] = Array.isArray(value) ? value : [value];
  return list.map((item) => (isRange(item) ? item : { start: item, end: item, step: 1 }));
}

function isRange(item: unknown): item is Range {
  return typeof item === 'object' && item !== null && 'start' in item && 'end' in item;
}
