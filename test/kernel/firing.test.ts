import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ScheduleCalendar } from '../../src/kernel/calendar.ts';
import { firingsAfter, firingsBetween, readsTimeOf } from '../../src/kernel/firing.ts';

const monthEnd: ScheduleCalendar = { zone: 'Asia/Shanghai', dayOfMonth: 1, hour: 2, minute: 0 };
const next = (calendar: ScheduleCalendar, after: string, count: number) =>
  firingsAfter(calendar, after, count).map(({ at, how }) => [at, how]);
const between = (calendar: ScheduleCalendar, after: string, until: string) =>
  firingsBetween(calendar, after, until).firings.map(({ at, how }) => [at, how]);

describe('the firings of a calendar', () => {
  it('come after the given instant, in order, as many as asked for', () => {
    expect(next(monthEnd, '2026-09-30T18:00:00Z', 2)).toEqual([
      ['2026-10-31T18:00:00Z', 'calendar'],
      ['2026-11-30T18:00:00Z', 'calendar'],
    ]);
    expect(next(monthEnd, '2026-09-30T17:59:59.999999Z', 1)).toEqual([['2026-09-30T18:00:00Z', 'calendar']]);
    expect(next(monthEnd, '2026-09-30T18:00:00Z', 0)).toEqual([]);
  });

  it('end with the year 2100', () => {
    const leapDay: ScheduleCalendar = { zone: 'UTC', month: 2, dayOfMonth: 29, hour: 0, minute: 0 };
    expect(next(leapDay, '2092-01-01T00:00:00Z', 5).map(([at]) => at)).toEqual([
      '2092-02-29T00:00:00Z',
      '2096-02-29T00:00:00Z',
    ]);
  });

  // C61: the gap of 1 October 2023, and gaps at midnight.
  it.each<[string, ScheduleCalendar, string, string, string]>([
    [
      'Sydney at 02:30 on the 1st',
      { zone: 'Australia/Sydney', dayOfMonth: 1, hour: 2, minute: 30 },
      '2023-09-30T00:00:00Z',
      '2023-10-02T00:00:00Z',
      '2023-09-30T16:00:00Z',
    ],
    [
      'Santiago at 00:30',
      { zone: 'America/Santiago', hour: 0, minute: 30 },
      '2026-09-05T12:00:00Z',
      '2026-09-06T12:00:00Z',
      '2026-09-06T04:00:00Z',
    ],
    [
      'Nuuk at 23:30',
      { zone: 'America/Nuuk', hour: 23, minute: 30 },
      '2026-03-28T12:00:00Z',
      '2026-03-29T12:00:00Z',
      '2026-03-29T01:00:00Z',
    ],
    [
      'Lord Howe at 02:15, whose clock jumps by half an hour',
      { zone: 'Australia/Lord_Howe', hour: 2, minute: 15 },
      '2026-10-03T00:00:00Z',
      '2026-10-04T00:00:00Z',
      '2026-10-03T15:30:00Z',
    ],
    [
      'Apia on the 30th that never was',
      { zone: 'Pacific/Apia', dayOfMonth: 30, hour: 4, minute: 0 },
      '2011-12-20T00:00:00Z',
      '2012-01-10T00:00:00Z',
      '2011-12-30T10:00:00Z',
    ],
  ])('come at the first instant after a gap: %s', (_, calendar, after, until, at) => {
    expect(between(calendar, after, until)).toEqual([[at, 'gap']]);
    expect(firingsBetween({ ...calendar, gap: 'skip' }, after, until)).toEqual({
      firings: [],
      lost: [{ at, how: 'gap', stated: expect.any(String) }],
    });
  });

  it('come once a day around a day that the clock jumps over', () => {
    const daily: ScheduleCalendar = { zone: 'Pacific/Apia', hour: 0, minute: 30 };
    expect(next(daily, '2011-12-28T12:00:00Z', 3).map(([at]) => at)).toEqual([
      '2011-12-29T10:30:00Z',
      '2011-12-30T10:30:00Z',
      '2011-12-31T10:30:00Z',
    ]);
  });

  it('come at one of the two readings of a repeated time, as the rule says, east and west of Greenwich', () => {
    const newYork: ScheduleCalendar = { zone: 'America/New_York', hour: 1, minute: 30 };
    const berlin: ScheduleCalendar = { zone: 'Europe/Berlin', hour: 2, minute: 30 };
    expect(next(newYork, '2026-11-01T00:00:00Z', 2)).toEqual([
      ['2026-11-01T05:30:00Z', 'repeated'],
      ['2026-11-02T06:30:00Z', 'calendar'],
    ]);
    expect(next({ ...newYork, repeated: 'second' }, '2026-11-01T00:00:00Z', 1)).toEqual([
      ['2026-11-01T06:30:00Z', 'repeated'],
    ]);
    expect(next(berlin, '2026-10-24T12:00:00Z', 1)).toEqual([['2026-10-25T00:30:00Z', 'repeated']]);
    expect(next({ ...berlin, repeated: 'second' }, '2026-10-24T12:00:00Z', 1)).toEqual([
      ['2026-10-25T01:30:00Z', 'repeated'],
    ]);
  });

  it('of every hour come once an hour, and not again after a gap, unless the hour has only a part', () => {
    const newYork: ScheduleCalendar = { zone: 'America/New_York', minute: 5 };
    expect(between(newYork, '2026-03-08T06:00:00Z', '2026-03-08T08:00:00Z')).toEqual([
      ['2026-03-08T06:05:00Z', 'calendar'],
      ['2026-03-08T07:05:00Z', 'calendar'],
    ]);
    const lordHowe: ScheduleCalendar = { zone: 'Australia/Lord_Howe', minute: 5 };
    expect(between(lordHowe, '2026-10-03T14:00:00Z', '2026-10-03T16:30:00Z')).toEqual([
      ['2026-10-03T14:35:00Z', 'calendar'],
      ['2026-10-03T15:30:00Z', 'gap'],
      ['2026-10-03T16:05:00Z', 'calendar'],
    ]);
  });

  it('are marked where a holiday moved them', () => {
    const businessDays = { weekend: [6, 7], holidays: ['2026-12-25', '2026-12-28'], otherwise: 'next' } as const;
    const calendar: ScheduleCalendar = { zone: 'Europe/London', dayOfMonth: 25, hour: 6, minute: 0, businessDays };
    expect(next(calendar, '2026-12-01T00:00:00Z', 2)).toEqual([
      ['2026-12-29T06:00:00Z', 'moved'],
      ['2027-01-25T06:00:00Z', 'calendar'],
    ]);
  });

  it('are read off the clock, away from changes of it', () => {
    const calendar = fc.record(
      {
        zone: fc.constantFrom('UTC', 'Asia/Kathmandu', 'America/Bogota', 'Pacific/Kiritimati'),
        month: fc.integer({ min: 1, max: 12 }),
        dayOfMonth: fc.integer({ min: 1, max: 28 }),
        dayOfWeek: fc.integer({ min: 1, max: 7 }),
        hour: fc.integer({ min: 0, max: 23 }),
        minute: fc.integer({ min: 0, max: 59 }),
      },
      { requiredKeys: ['zone', 'hour', 'minute'] },
    );
    const after = fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2060, 0) });
    fc.assert(
      fc.property(calendar, after, (on, epoch) => {
        const instants = firingsAfter(on, new Date(epoch).toISOString(), 3).map(({ at }) => at);
        const times = instants.map((at) => Date.parse(at));
        expect(times).toEqual([...new Set(times)].toSorted((a, b) => a - b));
        expect([times.length, times.every((time) => time > epoch)]).toEqual([3, true]);
        expect(instants.every((at) => readsTimeOf(on, at))).toBe(true);
      }),
      { numRuns: 60 },
    );
  }, 30_000);
});

describe('an instant', () => {
  it('reads a time of the calendar at both occurrences of a repeated one', () => {
    const berlin: ScheduleCalendar = { zone: 'Europe/Berlin', hour: 2, minute: 30 };
    expect(readsTimeOf(berlin, '2026-10-25T00:30:00Z')).toBe(true);
    expect(readsTimeOf(berlin, '2026-10-25T01:30:00Z')).toBe(true);
    expect(readsTimeOf(berlin, '2026-10-25T02:30:00Z')).toBe(false);
    expect(readsTimeOf(berlin, '2026-03-29T01:30:00Z')).toBe(false);
  });

  it('reads it to the second, whatever its offset is written as', () => {
    expect(readsTimeOf(monthEnd, '2026-10-01T02:00:00+08:00')).toBe(true);
    expect(readsTimeOf(monthEnd, '2026-09-30T18:00:01Z')).toBe(false);
    expect(readsTimeOf(monthEnd, '2026-09-30T18:00:00.000001Z')).toBe(false);
    expect(readsTimeOf(monthEnd, '2026-09-29T18:00:00Z')).toBe(false);
  });
});
