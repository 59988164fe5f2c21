import { z } from 'zod';
import type { ScheduleCalendar } from '../kernel/calendar.ts';
import { OnceperError } from '../kernel/error.ts';
import type { PeriodCalendar } from '../kernel/period.ts';
import type { ZoneClock } from '../kernel/zone-clock.ts';

const positive = z.int().positive();

/** A value of a calendar's field, or a list of them. */
function fieldOf(least: number, most: number) {
  const value = z.int().min(least).max(most);
  return z.union([value, z.array(value).min(1)]);
}

/**
 * The part of a rule file that every job shares. `parameters` is the job's own part, parsed by the job. Starting values:
 * a lease of 30 s is ten heartbeats; 500 subjects keep a slice near 50 ms; a start window of 60 s covers a worker's restart.
 */
const ruleShape = z.strictObject({
  job: z.string().regex(/^[a-z][a-z0-9-]*$/),
  zone: z.string().min(1),
  period: z.enum(['year', 'month', 'week', 'day', 'hour', 'fiscal-year', 'fiscal-month']),
  fiscalStartMonth: z.int().min(1).max(12).optional(),
  first: z.string(),
  calendar: z.strictObject({
    month: fieldOf(1, 12).optional(),
    dayOfMonth: fieldOf(-31, 31).optional(),
    dayOfWeek: fieldOf(1, 7).optional(),
    nthDayOfWeek: fieldOf(-5, 5).optional(),
    nthBusinessDay: fieldOf(-23, 23).optional(),
    hour: fieldOf(0, 23).optional(),
    minute: fieldOf(0, 59),
    businessDays: z
      .strictObject({
        weekend: z.array(z.int().min(1).max(7)).default([6, 7]),
        holidays: z.array(z.string()).default([]),
        otherwise: z.enum(['skip', 'next', 'previous']).default('skip'),
      })
      .optional(),
    except: z.array(z.string()).optional(),
    gap: z.enum(['after', 'skip']).default('after'),
    repeated: z.enum(['first', 'second']).default('first'),
  }),
  /** Which of the firings that were missed are made up for; a job whose periods need their predecessors takes all. */
  missedFirings: z.enum(['all', 'latest', 'none']).default('all'),
  /** How late a firing must be to count as missed: an hour outlasts a deploy. */
  missedAfterSeconds: positive.default(3_600),
  leaseSeconds: positive.default(30),
  startWindowSeconds: positive.default(60),
  subjectsPerSlice: positive.default(500),
  slicesInFlight: positive.max(64).default(8),
  budget: positive.default(5),
  /** Runs later than this after their period's end are held; null sets no limit. */
  latenessDays: positive.nullable().default(null),
  /** How many days the ledger keeps keys; null keeps them for good, as settlement does. */
  keepKeysDays: positive.nullable().default(null),
  /** While one of these is reached, further runs are deferred; null sets no limit. The defaults protect who states none. */
  limits: z
    .strictObject({
      runsInFlight: positive.nullable().default(16),
      backlogEffects: positive.nullable().default(1_000_000),
      backlogOldestSeconds: positive.nullable().default(7 * 86_400),
    })
    .prefault({}),
  parameters: z.unknown(),
});

export type JobRule = z.infer<typeof ruleShape> & {
  /** The ledger's table of the zone; a rule that is not stored yet goes by this process's own. */
  readonly clock?: ZoneClock;
};

/** A version of a rule as the ledger has it. */
export interface StoredBody {
  readonly job: string;
  readonly version: number;
  readonly body: unknown;
  readonly clock: ZoneClock | null;
}

/** A stored rule, with the ledger's clock in it. Throws OnceperError `malformed_rule`. */
export function storedRule({ job, version, body, clock }: StoredBody): JobRule {
  const rule = parseRule(body, `${job} version ${version}`);
  return clock === null ? rule : { ...rule, clock };
}

/** Parses a rule file's JSON; throws OnceperError `malformed_rule` naming the field, and where given the file, that is wrong. */
export function parseRule(body: unknown, at: string): JobRule {
  const parsed = ruleShape.safeParse(body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue === undefined ? '' : issue.path.join('.');
  throw new OnceperError({
    code: 'malformed_rule',
    message: `rule ${at}: ${field === '' ? '' : `${field}: `}${issue?.message ?? 'not a rule'}`,
    remedy: 'compare it with rules/settlement.json',
    at,
  });
}

/** The period calendar of a rule. */
export function periodCalendar({ zone, clock, period, fiscalStartMonth }: JobRule): PeriodCalendar {
  return {
    kind: period,
    zone,
    ...(clock === undefined ? {} : { clock }),
    ...(fiscalStartMonth === undefined ? {} : { fiscalStartMonth }),
  };
}

/** The schedule calendar of a rule, in the rule's zone. */
export function scheduleCalendar({ zone, clock, calendar }: JobRule): ScheduleCalendar {
  return { ...calendar, zone, ...(clock === undefined ? {} : { clock }) };
}
