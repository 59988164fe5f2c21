import fc from 'fast-check';
import { expect } from 'vitest';
import { occasionsOf } from '../../src/jobs/occasion.ts';
import { type JobRule, parseRule, scheduleCalendar } from '../../src/jobs/rule.ts';
import { localEnd, periodAfter, periodBounds, periodClosedBy, periodsBetween } from '../../src/kernel/period.ts';
import { clockOfProcess } from '../../src/kernel/zone-clock.ts';
import { tinyRule } from '../support/tiny-job.ts';
import { boundaryOf, firingsOf, quartersOf } from './occasion-model.ts';

const calendarOf = ({ period: kind, zone }: JobRule) => ({ kind, zone });

const ZONES = [
  'Australia/Sydney',
  'Australia/Lord_Howe',
  'America/Santiago',
  'America/Nuuk',
  'America/New_York',
  'Pacific/Apia',
  'Europe/London',
  'Asia/Shanghai',
  'Asia/Kathmandu',
  'Africa/Cairo',
  'Africa/Casablanca',
  'Antarctica/Troll',
  'UTC',
];
const numbers = (min: number, max: number) =>
  fc.oneof(fc.integer({ min, max }), fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 3 }));
const eitherEnd = (max: number) => numbers(-max, max).filter((field) => [field].flat().every((value) => value !== 0));

/** A day of the epoch from 2011 to 2028 in a zone, and the hour that its clock is about to read where it lies just before a change. */
function dayIn(zone: string) {
  const clock = clockOfProcess(zone);
  const any = fc.record({ day: fc.integer({ min: 15_000, max: 21_500 }), hour: fc.constant(null) });
  const changes = clock.transitionsBetween(15_000 * 86_400, 21_500 * 86_400).map(({ at }) => ({
    day: Math.floor(at / 86_400),
    hour: Math.floor(((at + clock.offsetAt(at - 1)) % 86_400) / 3_600),
  }));
  if (changes.length === 0) return any;
  const near = fc.tuple(fc.constantFrom(...changes), fc.integer({ min: 0, max: 2 }));
  return fc.oneof(
    any,
    near.map(([{ day, hour }, before]) => ({ day: day - before, hour })),
  );
}
const zoneAndDay = fc.constantFrom(...ZONES).chain((zone) => dayIn(zone).map((at) => ({ zone, ...at })));
/** Clocks change between 23 and 3 o'clock. */
const hours = fc.oneof(
  numbers(0, 23),
  fc.constantFrom(0, 1, 2, [0, 23], [0, 1, 2, 3], [1, 2]),
  fc.constantFrom(2, [0, 1, 2]),
);

/** The days that a rule states, every day more often than any others, so that firings meet the changes of the clock. */
const days = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  fc.record({ dayOfMonth: eitherEnd(31) }),
  fc.record({ month: numbers(1, 12), dayOfMonth: eitherEnd(28) }),
  fc.record({ dayOfWeek: numbers(1, 7) }),
  fc.record({ dayOfWeek: numbers(1, 7), nthDayOfWeek: eitherEnd(5) }),
  fc.record({ nthBusinessDay: eitherEnd(10) }),
);
const businessDays = fc.record({
  weekend: fc.constantFrom([6, 7], [5, 6], []),
  holidays: fc.constant([]),
  otherwise: fc.constantFrom('skip', 'next', 'previous'),
});
const times = fc.record({
  hour: fc.oneof({ weight: 5, arbitrary: hours }, fc.constant(undefined)),
  minute: fc.constantFrom(0, 15, 30, 45, [0, 30]),
  gap: fc.constantFrom('after', 'skip'),
  repeated: fc.constantFrom('first', 'second'),
});
const moves = fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, fc.record({ businessDays }));
const randomRule = fc.record({
  at: zoneAndDay,
  /** Whether the rule states the hour in which the clock changes. */
  atChange: fc.boolean(),
  period: fc.constantFrom('hour', 'hour', 'hour', 'day', 'day', 'day', 'day', 'day', 'week', 'month'),
  calendar: fc.tuple(days, moves, times).map(([on, moved, at]) => ({ ...on, ...moved, ...at })),
});

/** How many periods of each kind are looked at, and how many days that takes beside them. */
const SPAN = { hour: [12, 3, 1], day: [4, 3, 2], week: [1, 9, 8], month: [1, 34, 33] } as const;

/**
 * Compares so many random rules with the model: each period has its occasions, none without an end and none twice, and the periods
 * leave no gap and do not overlap. Returns how often each kind of occasion was met: a generator that never meets one shows nothing.
 */
export function compareWithModel(numRuns: number): Readonly<Record<string, number>> {
  const seen = { calendar: 0, gap: 0, repeated: 0, moved: 0, caught_up: 0, check: 0 };
  fc.assert(
    fc.property(randomRule, ({ at: { zone, day: on, hour }, atChange, period, calendar }) => {
      const stated = atChange && hour !== null ? { ...calendar, hour } : calendar;
      const of = parseRule(tinyRule({ zone, period, first: '2000', calendar: stated }), 'here');
      for (const { how } of compareOne(of, on)) seen[how] += 1;
    }),
    { numRuns },
  );
  return seen;
}

function compareOne(of: JobRule, on: number) {
  const calendar = calendarOf(of);
  const [count, margin, longest] = SPAN[of.period as keyof typeof SPAN];
  const span = Math.ceil({ hour: 1 / 24, day: 1, week: 7, month: 31 }[of.period as keyof typeof SPAN] * count);
  const at = (day: number) => new Date(day * 86_400_000).toISOString();
  const [from, to] = [periodClosedBy(at(on), calendar), periodClosedBy(at(on + span), calendar)];
  const bounds = periodsBetween(from, to, calendar).map((name) => periodBounds(name, calendar));
  const [start, end] = [on - margin - longest, on + span + margin + longest];
  const quarters = quartersOf(of.zone, start, end);
  for (const [index, { starts, ends, startsOn }] of bounds.entries()) {
    expect(Date.parse(starts)).toBeLessThan(Date.parse(ends));
    if (index > 0) expect(starts).toBe(bounds[index - 1]?.ends);
    if (of.period === 'hour') continue;
    expect(Date.parse(starts) / 60_000).toBe(boundaryOf(quarters, Date.parse(`${startsOn}T00:00Z`) / 60_000));
  }
  const occasions = occasionsOf(of, from, to);
  const days = Array.from({ length: end - start - 4 }, (_, index) => start + 2 + index);
  const expected = modelOf(of, bounds, firingsOf(scheduleCalendar(of), quarters, days));
  const shown = ({ how }: (typeof occasions)[number]) => (how === 'check' || how === 'caught_up' ? how : 'fires');
  expect(occasions.map((one) => [one.at, one.period, shown(one)])).toEqual(expected);
  for (const { at: instant, period } of occasions) expect(periodClosedBy(instant, calendar)).toBe(period);
  return occasions;
}

/** Each period's firings from its end to the end of the next, or its end. */
function modelOf(
  of: JobRule,
  bounds: readonly { period: string; ends: string }[],
  firings: ReturnType<typeof firingsOf>,
) {
  const instant = (minutes: number) => `${new Date(minutes * 60_000).toISOString().slice(0, 19)}Z`;
  return bounds.flatMap(({ period, ends }, index) => {
    const from = Date.parse(ends) / 60_000;
    const next = bounds[index + 1]?.ends ?? nextEnd(of, period);
    const isInside = ({ at }: { at: number }) => at >= from && at < Date.parse(next) / 60_000;
    // A gap's firing closes what its stated time would have: one that the jump carries over an end of a period closes none.
    const [localFrom, localNext] = [localEndOf(of, period), localEndOf(of, periodAfter(period, calendarOf(of)))];
    const isStatedInside = ({ local }: { local: number }) => local >= localFrom && local < localNext;
    const own = firings.filter((one) => (one.isGap ? isStatedInside(one) : isInside(one)));
    const kept = own.filter((one) => !one.isGap || (of.calendar.gap !== 'skip' && isInside(one)));
    if (kept.length > 0) return kept.map(({ at }) => [instant(at), period, 'fires']);
    return [[instant(from), period, own.length > 0 && of.calendar.gap === 'skip' ? 'check' : 'caught_up']];
  });
}

/** The end of a period as minutes on the zone's clock. */
function localEndOf(of: JobRule, period: string): number {
  return Date.parse(`${localEnd(period, calendarOf(of))}Z`) / 60_000;
}

function nextEnd(of: JobRule, period: string): string {
  return periodBounds(periodAfter(period, calendarOf(of)), calendarOf(of)).ends;
}
