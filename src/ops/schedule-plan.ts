import { createHash } from 'node:crypto';
import type {
  CalendarSpec,
  CalendarSpecDescription,
  ScheduleDescription,
  ScheduleOptions,
  ScheduleUpdateOptions,
} from '@temporalio/client';
import type { JobRule } from '../jobs/rule.ts';
import type { Instant } from '../kernel/sql.ts';
import { CATCH_UP_DAYS, scheduleTimes } from './schedule-times.ts';

/** What a job's schedule must be: the code owns it, whole. */
export interface SchedulePlan {
  readonly job: string;
  readonly rule: JobRule;
  /** The database's clock: dates that are written out go two years on from here. */
  readonly now: Instant;
  readonly taskQueue: string;
  /** One more instant beside the calendar, in whole seconds; gone with the next apply that does not name it. */
  readonly oneOff?: Instant;
}

const DAY_MS = 86_400_000;

/**
 * The options of a job's schedule. ALLOW_ALL, because with any other policy Temporal drops ticks while one is open, and
 * order is admission's; no jitter, because the nominal time must be the calendar's.
 */
export function scheduleOptions(
  plan: SchedulePlan,
): Omit<ScheduleOptions, 'scheduleId' | 'state' | 'memo'> & Omit<ScheduleUpdateOptions, 'state'> {
  const { job, rule, now, taskQueue, oneOff } = plan;
  const { timezone, calendars } = scheduleTimes(rule, now, oneOff);
  return {
    spec: { timezone, calendars: [...calendars] },
    action: { type: 'startWorkflow', workflowType: 'tick', workflowId: job, taskQueue, args: [{ job }] },
    policies: { overlap: 'ALLOW_ALL', catchupWindow: CATCH_UP_DAYS * DAY_MS, pauseOnFailure: false },
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
    zone: spec.timezone ?? 'UTC',
    calendar: calendarsText(spec.calendars ?? []),
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
    calendar: calendarsText(spec.calendars ?? []),
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

/** More calendars than these are told by their number, their end and a digest: they are dates written out. */
const CALENDARS_SHOWN = 3;

/** Calendars as text, in any order, the same for what we send and for what the server gives back. */
export function calendarsText(calendars: readonly (CalendarSpec | CalendarSpecDescription)[]): string {
  const text = calendars.map(calendarText).sort().join('; ');
  if (calendars.length <= CALENDARS_SHOWN) return text;
  const years = calendars.flatMap(({ year }) => rangesOf(year).map(({ end }) => Number(end)));
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 8);
  return `written out as dates to the end of ${Math.max(...years)} (${calendars.length} calendars, ${digest})`;
}

/** A digest of when a plan fires, the same whenever it is asked until the next New Year. */
export function planDigest(plan: SchedulePlan): string {
  const { zone, calendar } = factsOf(plan);
  return createHash('sha256').update(`${zone} ${calendar}`).digest('hex');
}

/** `dayOfMonth 1, hour 2, minute 0`: the fields that do not mean "any". */
function calendarText(calendar: CalendarSpec | CalendarSpecDescription): string {
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
