import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  calendarInstants,
  instantClosing,
  isCalendarInstant,
  type ScheduleCalendar,
} from '../../src/kernel/calendar.ts';
import { type PeriodCalendar, periodBounds, periodClosedBy, periodsBetween } from '../../src/kernel/period.ts';

interface Recorded {
  readonly calendar: ScheduleCalendar;
  readonly from: string;
  readonly to: string;
  readonly instants: readonly string[];
}

/** What a real Temporal server answered for calendars around changes of the clock, month ends and leap days. */
const recording: { readonly recordedFrom: string; readonly cases: readonly Recorded[] } = JSON.parse(
  readFileSync(new URL('temporal-firings.json', import.meta.url), 'utf8'),
);
const monthEnd: ScheduleCalendar = { zone: 'Asia/Shanghai', dayOfMonth: 1, hour: 2, minute: 0 };

describe('the instants of a calendar', () => {
  it(`are those of ${recording.recordedFrom}`, () => {
    expect(recording.cases.length).toBeGreaterThan(150);
    for (const { calendar, from, to, instants } of recording.cases) {
      const ours = calendarInstants(calendar, from, instants.length + 1);
      const asked = ours.filter((at) => Date.parse(at) <= Date.parse(to));
      expect({ calendar, from, instants: asked }).toEqual({ calendar, from, instants });
      for (const at of instants) expect([calendar, at, isCalendarInstant(calendar, at)]).toEqual([calendar, at, true]);
    }
  }, 30_000);

  it('come after the given one, in order, as many as asked for', () => {
    expect(calendarInstants(monthEnd, '2026-09-30T18:00:00Z', 2)).toEqual([
      '2026-10-31T18:00:00Z',
      '2026-11-30T18:00:00Z',
    ]);
    expect(calendarInstants(monthEnd, '2026-09-30T17:59:59.999999Z', 1)).toEqual(['2026-09-30T18:00:00Z']);
    expect(calendarInstants(monthEnd, '2026-09-30T18:00:00Z', 0)).toEqual([]);
  });

  it('leave out the months that have no 31st', () => {
    const last: ScheduleCalendar = { zone: 'UTC', dayOfMonth: 31, hour: 0, minute: 0 };
    const dates = calendarInstants(last, '2027-01-01T00:00:00Z', 4).map((at) => at.slice(0, 10));
    expect(dates).toEqual(['2027-01-31', '2027-03-31', '2027-05-31', '2027-07-31']);
  });

  it('end with the year 2100, in which 29 February is missing', () => {
    const leapDay: ScheduleCalendar = { zone: 'UTC', month: 2, dayOfMonth: 29, hour: 0, minute: 0 };
    expect(calendarInstants(leapDay, '2092-01-01T00:00:00Z', 5)).toEqual([
      '2092-02-29T00:00:00Z',
      '2096-02-29T00:00:00Z',
    ]);
    expect(isCalendarInstant(leapDay, '2104-02-29T00:00:00Z')).toBe(false);
  });

  it('fire at neither time that the clock jumps over', () => {
    const berlin: ScheduleCalendar = { zone: 'Europe/Berlin', hour: 2, minute: 30 };
    expect(calendarInstants(berlin, '2026-03-28T12:00:00Z', 1)).toEqual(['2026-03-30T00:30:00Z']);
    expect(isCalendarInstant(berlin, '2026-03-29T01:30:00Z')).toBe(false);
  });

  it('pass by a day that the clock jumps over', () => {
    const daily: ScheduleCalendar = { zone: 'Pacific/Apia', hour: 0, minute: 30 };
    expect(calendarInstants(daily, '2011-12-28T12:00:00Z', 3)).toEqual([
      '2011-12-29T10:30:00Z',
      '2011-12-30T10:30:00Z',
      '2011-12-31T10:30:00Z',
    ]);
  });

  it('fire twice at a repeated time west of Greenwich, and east of it the second time', () => {
    const newYork: ScheduleCalendar = { zone: 'America/New_York', hour: 1, minute: 30 };
    const repeated = ['2026-11-01T05:30:00Z', '2026-11-01T06:30:00Z'];
    expect(calendarInstants(newYork, '2026-11-01T00:00:00Z', 2)).toEqual(repeated);
    const berlin: ScheduleCalendar = { zone: 'Europe/Berlin', hour: 2, minute: 30 };
    expect(calendarInstants(berlin, '2026-10-24T12:00:00Z', 1)).toEqual(['2026-10-25T01:30:00Z']);
  });
});

describe('an instant', () => {
  it('is the calendar’s at both occurrences of a repeated time', () => {
    const berlin: ScheduleCalendar = { zone: 'Europe/Berlin', hour: 2, minute: 30 };
    expect(isCalendarInstant(berlin, '2026-10-25T00:30:00Z')).toBe(true);
    expect(isCalendarInstant(berlin, '2026-10-25T01:30:00Z')).toBe(true);
    expect(isCalendarInstant(berlin, '2026-10-25T02:30:00Z')).toBe(false);
  });

  it('is the calendar’s to the second, whatever its offset is written as', () => {
    expect(isCalendarInstant(monthEnd, '2026-10-01T02:00:00+08:00')).toBe(true);
    expect(isCalendarInstant(monthEnd, '2026-09-30T18:00:01Z')).toBe(false);
    expect(isCalendarInstant(monthEnd, '2026-09-30T18:00:00.000001Z')).toBe(false);
    expect(isCalendarInstant(monthEnd, '2026-09-29T18:00:00Z')).toBe(false);
  });

  it('is one of those that are listed, away from changes of the clock', () => {
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
        const instants = calendarInstants(on, new Date(epoch).toISOString(), 3);
        expect(instants.length).toBe(3);
        const times = instants.map((at) => Date.parse(at));
        expect(times).toEqual([...new Set(times)].toSorted((a, b) => a - b));
        expect(times.every((time) => time > epoch)).toBe(true);
        expect(instants.every((at) => isCalendarInstant(on, at))).toBe(true);
      }),
      { numRuns: 60 },
    );
  }, 30_000);
});

describe('the instant that closes a period', () => {
  const month: PeriodCalendar = { kind: 'month', zone: 'Asia/Shanghai' };

  it('is the first of the schedule at or after its end', () => {
    expect(instantClosing('2026-09', month, monthEnd)).toBe('2026-09-30T18:00:00Z');
    const atMidnight: ScheduleCalendar = { ...monthEnd, hour: 0 };
    expect(instantClosing('2026-09', month, atMidnight)).toBe('2026-09-30T16:00:00Z');
  });

  it('closes that period, and each period has its own', () => {
    const periods = periodsBetween('2026-01', '2035-12', month);
    const instants = periods.map((period) => instantClosing(period, month, monthEnd));
    expect(instants.map((at) => periodClosedBy(at, month))).toEqual(periods);
    expect(new Set(instants).size).toBe(periods.length);
    for (const [index, period] of periods.entries()) {
      expect(Date.parse(periodBounds(period, month).ends)).toBeLessThanOrEqual(Date.parse(instants[index] ?? ''));
    }
  });

  it('is an error where the calendar has none left', () => {
    const refused = expect.objectContaining({ code: 'no_closing_instant', at: '2100-12' });
    expect(() => instantClosing('2100-12', month, monthEnd)).toThrow(refused);
  });

  it('is an error, not another period’s, where the schedule fires too seldom', () => {
    const yearly: ScheduleCalendar = { ...monthEnd, month: 1 };
    expect(instantClosing('2026-12', month, yearly)).toBe('2026-12-31T18:00:00Z');
    const refused = { code: 'no_closing_instant', at: '2026-09', message: expect.stringContaining('closes 2026-12') };
    expect(() => instantClosing('2026-09', month, yearly)).toThrow(expect.objectContaining(refused));
  });

  it('exists for every hour and day that holds some time, also before one that is jumped over', () => {
    const day: PeriodCalendar = { kind: 'day', zone: 'Pacific/Apia' };
    const daily: ScheduleCalendar = { zone: 'Pacific/Apia', hour: 0, minute: 30 };
    expect(instantClosing('2011-12-29', day, daily)).toBe('2011-12-30T10:30:00Z');
    const refused = expect.objectContaining({ code: 'no_closing_instant', at: '2011-12-30' });
    expect(() => instantClosing('2011-12-30', day, daily)).toThrow(refused);
    expect(instantClosing('2011-12-31', day, daily)).toBe('2011-12-31T10:30:00Z');
  });
});

describe('a calendar', () => {
  it.each([
    { month: 13 },
    { month: 0 },
    { dayOfMonth: 0 },
    { dayOfMonth: 32 },
    { month: 2, dayOfMonth: 30 },
    { month: 4, dayOfMonth: 31 },
    { dayOfWeek: 0 },
    { dayOfWeek: 8 },
    { hour: 24 },
    { hour: -1 },
    { minute: 60 },
    { minute: 1.5 },
  ])('with %j is refused', (fields) => {
    const refused = expect.objectContaining({ code: 'malformed_calendar' });
    const calendar = { ...monthEnd, ...fields };
    expect(() => calendarInstants(calendar, '2026-01-01T00:00:00Z', 1)).toThrow(refused);
    expect(() => isCalendarInstant(calendar, '2026-01-01T00:00:00Z')).toThrow(refused);
  });

  it('of an unknown zone is refused', () => {
    const refused = expect.objectContaining({ code: 'unknown_zone', at: 'Asia/Peking' });
    expect(() => isCalendarInstant({ ...monthEnd, zone: 'Asia/Peking' }, '2026-01-01T00:00:00Z')).toThrow(refused);
  });
});
