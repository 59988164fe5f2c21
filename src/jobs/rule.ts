import { z } from 'zod';
import type { ScheduleCalendar } from '../kernel/calendar.ts';
import { OnceperError } from '../kernel/error.ts';
import type { PeriodCalendar } from '../kernel/period.ts';

const positive = z.int().positive();

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
    month: z.int().min(1).max(12).optional(),
    dayOfMonth: z.int().min(1).max(31).optional(),
    dayOfWeek: z.int().min(1).max(7).optional(),
    hour: z.int().min(0).max(23).optional(),
    minute: z.int().min(0).max(59),
  }),
  leaseSeconds: positive.default(30),
  startWindowSeconds: positive.default(60),
  subjectsPerSlice: positive.default(500),
  slicesInFlight: positive.max(64).default(8),
  budget: positive.default(5),
  /** Runs later than this after their period's end are held; null sets no limit. */
  latenessDays: positive.nullable().default(null),
  /** How many days the ledger keeps keys; null keeps them for good, as settlement does. */
  keepKeysDays: positive.nullable().default(null),
  /** While one of these is reached, further runs are deferred; null sets no limit. */
  limits: z
    .strictObject({
      runsInFlight: positive.nullable().default(null),
      backlogEffects: positive.nullable().default(null),
      backlogOldestSeconds: positive.nullable().default(null),
    })
    .prefault({}),
  parameters: z.unknown(),
});

export type JobRule = z.infer<typeof ruleShape>;

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
export function periodCalendar(rule: JobRule): PeriodCalendar {
  return {
    kind: rule.period,
    zone: rule.zone,
    ...(rule.fiscalStartMonth === undefined ? {} : { fiscalStartMonth: rule.fiscalStartMonth }),
  };
}

/** The schedule calendar of a rule, in the rule's zone. */
export function scheduleCalendar(rule: JobRule): ScheduleCalendar {
  const { month, dayOfMonth, dayOfWeek, hour, minute } = rule.calendar;
  return {
    zone: rule.zone,
    ...(month === undefined ? {} : { month }),
    ...(dayOfMonth === undefined ? {} : { dayOfMonth }),
    ...(dayOfWeek === undefined ? {} : { dayOfWeek }),
    ...(hour === undefined ? {} : { hour }),
    minute,
  };
}
