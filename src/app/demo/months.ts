import { nominalTimeOf } from '../../jobs/occasion.ts';
import { type JobRule, periodCalendar } from '../../jobs/rule.ts';
import { OnceperError } from '../../kernel/error.ts';
import { compareInstants, instantPlus } from '../../kernel/instant.ts';
import { periodBounds, periodContaining, periodsBetween, previousPeriod } from '../../kernel/period.ts';
import type { Instant } from '../../kernel/sql.ts';

/** The months of a demo, oldest first; the last one is settled by the schedule's own run, the others by one backfill. */
export interface DemoMonths {
  readonly all: readonly string[];
  readonly before: readonly string[];
  readonly last: string;
  /** The calendar's own instant that closes the last month; it may still lie ahead. */
  readonly closing: Instant;
  /** The nominal times of the first and the last month of `before`, for `temporal schedule backfill`. */
  readonly backfill: { readonly from: Instant; readonly to: Instant };
}

const MINUTES_BEFORE_MONTH_END = 10;

/**
 * The twelve months that end with the last ended one, judged once by the database's clock. Throws OnceperError
 * `month_ends_soon` in the last ten minutes of a month of the zone: the demo's own run would fall into the next.
 */
export function demoMonths(rule: JobRule, now: Instant): DemoMonths {
  const calendar = periodCalendar(rule);
  const current = periodContaining(now, calendar);
  const { ends } = periodBounds(current, calendar);
  if (compareInstants(instantPlus(now, { minutes: MINUTES_BEFORE_MONTH_END }), ends) >= 0) {
    throw new OnceperError({
      code: 'month_ends_soon',
      message: `${current} ends at ${ends}, in less than ${MINUTES_BEFORE_MONTH_END} minutes, and the demo would run across it`,
      remedy: 'start it again when the month has ended',
      at: current,
    });
  }
  const last = previousPeriod(current, calendar);
  let first = last;
  for (let step = 1; step < 12; step += 1) first = previousPeriod(first, calendar);
  const all = periodsBetween(first, last, calendar);
  return monthsOf(rule, all);
}

/** Any months as a demo's, all of them by backfill but the last. */
export function monthsOf(rule: JobRule, all: readonly string[]): DemoMonths {
  const last = all.at(-1);
  const first = all[0];
  if (last === undefined || first === undefined) {
    throw new OnceperError({
      code: 'nothing_to_settle',
      message: 'no month of the file has ended',
      remedy: 'give a file whose rows lie in months that are over',
    });
  }
  const before = all.slice(0, -1);
  const to = before.at(-1) ?? first;
  return {
    all,
    before,
    last,
    closing: nominalTimeOf(rule, last),
    backfill: { from: nominalTimeOf(rule, first), to: nominalTimeOf(rule, to) },
  };
}
