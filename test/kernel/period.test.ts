import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  comparePeriods,
  existingPeriod,
  nextPeriod,
  type PeriodCalendar,
  parsePeriod,
  periodAfter,
  periodBounds,
  periodClosedBy,
  periodContaining,
  periodOfDate,
  periodsBetween,
  previousPeriod,
} from '../../src/kernel/period.ts';

const month = (zone: string): PeriodCalendar => ({ kind: 'month', zone });
const calendars: Readonly<Record<string, PeriodCalendar>> = {
  year: { kind: 'year', zone: 'Europe/London' },
  month: month('Asia/Shanghai'),
  week: { kind: 'week', zone: 'America/New_York' },
  day: { kind: 'day', zone: 'Pacific/Apia' },
  hour: { kind: 'hour', zone: 'Australia/Lord_Howe' },
  'fiscal-year': { kind: 'fiscal-year', zone: 'Europe/London', fiscalStartMonth: 4 },
  'fiscal-month': { kind: 'fiscal-month', zone: 'Asia/Kolkata', fiscalStartMonth: 4 },
  'fiscal-month of January': { kind: 'fiscal-month', zone: 'UTC', fiscalStartMonth: 1 },
};
const everyKind = Object.entries(calendars);
const instant = fc
  .integer({ min: Date.UTC(1900, 0), max: Date.UTC(2100, 0) })
  .map((epoch) => new Date(epoch).toISOString().replace('.000Z', 'Z'));
const malformed = (text: string, form: string): unknown =>
  expect.objectContaining({ code: 'malformed_period', at: text, remedy: expect.stringContaining(form) });

describe('the text of a period', () => {
  it.each([
    ['year', '2026'],
    ['month', '2026-09'],
    ['week', '2026-W39'],
    ['week', '2026-W53'],
    ['day', '2026-09-30'],
    ['day', '2028-02-29'],
    ['hour', '2026-09-30T14'],
    ['hour', '2026-09-30T00'],
    ['fiscal-year', 'FY2027'],
    ['fiscal-month', 'FY2027-P03'],
  ] as const)('of kind %s may be %s', (kind, text) => {
    expect(parsePeriod(text, calendars[kind] ?? month('UTC'))).toBe(text);
  });

  it.each([
    ['year', 'YYYY', ['26', '02026', '2026-09', '0206', '3026', 'FY2026', '']],
    ['month', 'YYYY-MM', ['2026-9', '2026-13', '2026-00', '2026', '2026-09-30', '202609', '2026-09 ', '2026-09\n']],
    ['month', 'YYYY-MM', ['2026/09', '26-09', '0206-09', 'FY2026-P09', 'September 2026', '２０２６-09', '']],
    ['week', 'YYYY-Www', ['2026-W54', '2025-W53', '2026-W00', '2026-W9', '2026-w39', '2026W39', '2026-39']],
    ['day', 'YYYY-MM-DD', ['2025-02-30', '2025-02-29', '2026-9-30', '2026-09-31', '2026-09', '20260930']],
    ['hour', 'YYYY-MM-DDTHH', ['2026-09-30T24', '2026-09-30T4', '2026-09-30 14', '2026-09-30T14:00', '2025-02-30T14']],
    ['fiscal-year', 'FYYYYY', ['2027', 'FY27', 'fy2027', 'FY2027-P03', 'FY0027']],
    ['fiscal-month', 'FYYYYY-Pnn', ['FY2027-P13', 'FY2027-P00', 'FY2027-P3', 'FY2027', '2027-P03', 'FY2027-03']],
  ] as const)('of kind %s is refused unless it reads %s', (kind, form, texts) => {
    const calendar = calendars[kind] ?? month('UTC');
    for (const text of texts) expect(() => parsePeriod(text, calendar)).toThrow(malformed(text, form));
  });

  it('is refused by everything that takes a period', () => {
    const calendar = month('UTC');
    const refused = malformed('2026-9', 'YYYY-MM');
    expect(() => nextPeriod('2026-9', calendar)).toThrow(refused);
    expect(() => previousPeriod('2026-9', calendar)).toThrow(refused);
    expect(() => periodBounds('2026-9', calendar)).toThrow(refused);
    expect(() => comparePeriods('2026-09', '2026-9', calendar)).toThrow(refused);
    expect(() => periodsBetween('2026-9', '2026-10', calendar)).toThrow(refused);
  });

  it('never leaves the years 1000 to 2999', () => {
    expect(() => nextPeriod('2999-12', month('UTC'))).toThrow(malformed('3000-01', 'YYYY-MM'));
    expect(() => previousPeriod('1000-01', month('UTC'))).toThrow(malformed('0999-12', 'YYYY-MM'));
    expect(() => periodOfDate('0001-01-01', month('UTC'))).toThrow(malformed('0001-01', 'YYYY-MM'));
  });
});

describe.each(everyKind)('periods by the %s', (_, calendar) => {
  it('read back as they are written, follow one another, and are what holds their start', () => {
    fc.assert(
      fc.property(instant, (at) => {
        const period = periodContaining(at, calendar);
        expect(parsePeriod(period, calendar)).toBe(period);
        expect(nextPeriod(previousPeriod(period, calendar), calendar)).toBe(period);
        expect(previousPeriod(nextPeriod(period, calendar), calendar)).toBe(period);
        expect(comparePeriods(period, nextPeriod(period, calendar), calendar)).toBe(-1);
        expect(comparePeriods(period, previousPeriod(period, calendar), calendar)).toBe(1);
        expect(comparePeriods(period, period, calendar)).toBe(0);
        const { starts, ends } = periodBounds(period, calendar);
        expect([Date.parse(starts) <= Date.parse(at), Date.parse(at) < Date.parse(ends)]).toEqual([true, true]);
        expect(periodContaining(starts, calendar)).toBe(period);
        expect(periodBounds(nextPeriod(period, calendar), calendar).starts).toBe(ends);
      }),
      { numRuns: 150 },
    );
  }, 30_000);
});

describe('the period of a nominal time', () => {
  // C01, whatever the process's TZ: see derivations.test.ts.
  it.each([
    ['Asia/Kolkata', '2026-09-30T19:00:00Z', '2026-09'],
    ['Pacific/Kiritimati', '2026-09-30T10:30:00Z', '2026-09'],
    ['America/Los_Angeles', '2026-10-01T00:00:00Z', '2026-08'],
    ['Asia/Shanghai', '2026-09-30T18:00:00Z', '2026-09'],
    ['UTC', '2026-09-30T23:59:59.999999Z', '2026-08'],
    ['UTC', '2026-10-01T00:00:00Z', '2026-09'],
    ['UTC', '2026-10-31T23:59:59Z', '2026-09'],
    ['UTC', '2026-03-31T00:30:00Z', '2026-02'],
    ['Asia/Kolkata', '2027-01-01T00:30:00+05:30', '2026-12'],
  ])('in %s at %s is %s', (zone, nominal, period) => {
    expect(periodClosedBy(nominal, month(zone))).toBe(period);
  });

  it('is the last that has ended by then and holds some time', () => {
    fc.assert(
      fc.property(instant, fc.constantFrom(...everyKind), (nominal, [, calendar]) => {
        const closed = periodClosedBy(nominal, calendar);
        expect(Date.parse(periodBounds(closed, calendar).ends)).toBeLessThanOrEqual(Date.parse(nominal));
        const current = periodContaining(nominal, calendar);
        expect(periodClosedBy(periodBounds(current, calendar).starts, calendar)).toBe(closed);
        const between = periodsBetween(nextPeriod(closed, calendar), previousPeriod(current, calendar), calendar);
        expect(between).toEqual([]);
      }),
    );
  });
});

describe('the interval of a period', () => {
  it('is local, half-open, and given as dates and as instants', () => {
    expect(periodBounds('2026-09', month('Asia/Shanghai'))).toEqual({
      period: '2026-09',
      startsOn: '2026-09-01',
      endsOn: '2026-10-01',
      starts: '2026-08-31T16:00:00Z',
      ends: '2026-09-30T16:00:00Z',
      facts: 'process',
    });
  });

  it('is refused in a zone that does not exist', () => {
    const refused = expect.objectContaining({ code: 'unknown_zone', at: 'Mars/Olympus' });
    expect(() => periodBounds('2026-09', month('Mars/Olympus'))).toThrow(refused);
    expect(() => periodContaining('2026-09-01T00:00:00Z', month('Mars/Olympus'))).toThrow(refused);
  });

  // C05 (b): the last days of the months, none skipped, none twice, no drift; and 29 February.
  it('ends with the last day of every month', () => {
    const lastDay = (period: string): string =>
      new Date(Date.parse(periodBounds(period, month('UTC')).endsOn) - 86_400_000).toISOString().slice(0, 10);
    const months = periodsBetween('2027-01', '2027-05', month('UTC'));
    const lastDays = ['2027-01-31', '2027-02-28', '2027-03-31', '2027-04-30', '2027-05-31'];
    expect(months.map(lastDay)).toEqual(lastDays);
    expect(lastDay('2028-02')).toBe('2028-02-29');
  });
});

describe('the period of a date', () => {
  it.each([
    ['month', '2026-09-30', '2026-09'],
    ['year', '2026-12-31', '2026'],
    ['day', '2011-12-31', '2011-12-31'],
    // C05 (d): the week's year is not the date's.
    ['week', '2025-12-28', '2025-W52'],
    ['week', '2025-12-29', '2026-W01'],
    ['week', '2027-01-01', '2026-W53'],
    ['week', '2027-01-04', '2027-W01'],
    // C05 (e): a fiscal year is named by the year in which it ends.
    ['fiscal-year', '2027-03-31', 'FY2027'],
    ['fiscal-year', '2027-04-01', 'FY2028'],
    ['fiscal-month', '2027-03-31', 'FY2027-P12'],
    ['fiscal-month', '2027-04-01', 'FY2028-P01'],
    ['fiscal-month of January', '2027-03-31', 'FY2027-P03'],
  ] as const)('by the %s: %s lies in %s', (kind, date, period) => {
    expect(periodOfDate(date, calendars[kind] ?? month('UTC'))).toBe(period);
  });

  it('is the same in every zone', () => {
    for (const zone of ['Pacific/Kiritimati', 'Pacific/Apia', 'UTC', 'Etc/GMT+12']) {
      expect(periodOfDate('2011-12-29', month(zone))).toBe('2011-12');
      expect(periodOfDate('2026-10-01', month(zone))).toBe('2026-10');
    }
  });

  // C62: Samoa went from the 29th to the 31st.
  it('is refused for a date that the zone left out, whatever the kind of period, and its neighbours lie in theirs', () => {
    const refused = expect.objectContaining({
      code: 'no_such_local_time',
      at: '2011-12-30',
      message: 'no such local date: the clock of Pacific/Apia jumped over 2011-12-30',
    });
    for (const kind of ['day', 'week', 'month', 'year'] as const) {
      const apia: PeriodCalendar = { kind, zone: 'Pacific/Apia' };
      expect(() => periodOfDate('2011-12-30', apia)).toThrow(refused);
    }
    const days: PeriodCalendar = { kind: 'day', zone: 'Pacific/Apia' };
    expect(() => existingPeriod('2011-12-30', days)).toThrow(refused);
    expect(periodsBetween('2011-12-28', '2012-01-01', days)).toEqual([
      '2011-12-28',
      '2011-12-29',
      '2011-12-31',
      '2012-01-01',
    ]);
    expect(periodAfter('2011-12-29', days)).toBe('2011-12-31');
    expect(periodBounds('2011-12-29', days).ends).toBe(periodBounds('2011-12-31', days).starts);
  });

  it('and an hour that the clock jumps over is no period either', () => {
    const hours: PeriodCalendar = { kind: 'hour', zone: 'America/New_York' };
    const refused = expect.objectContaining({
      code: 'no_such_local_time',
      message: expect.stringContaining('no such local hour'),
    });
    expect(() => existingPeriod('2026-03-08T02', hours)).toThrow(refused);
    expect(periodAfter('2026-03-08T01', hours)).toBe('2026-03-08T03');
  });

  it('lies between the dates of its bounds', () => {
    const date = fc
      .integer({ min: -25_567, max: 47_482 })
      .map((day) => new Date(day * 86_400_000).toISOString().slice(0, 10))
      .filter((day) => day !== '2011-12-30');
    const byDate = everyKind.filter(([, { kind }]) => kind !== 'hour');
    fc.assert(
      fc.property(date, fc.constantFrom(...byDate), (on, [, calendar]) => {
        const { startsOn, endsOn } = periodBounds(periodOfDate(on, calendar), calendar);
        expect([startsOn <= on, on < endsOn]).toEqual([true, true]);
      }),
      { numRuns: 500 },
    );
  });

  it.each(['2026-02-30', '2026-9-30', '2026-09', '', '2026-09-30T00', '30.09.2026'])('is refused for %j', (text) => {
    const refused = expect.objectContaining({ code: 'malformed_date', at: text });
    expect(() => periodOfDate(text, month('UTC'))).toThrow(refused);
  });

  it('is refused by the hour, of which a date has several', () => {
    const refused = malformed('2026-09-30', 'YYYY-MM-DDTHH');
    expect(() => periodOfDate('2026-09-30', { kind: 'hour', zone: 'UTC' })).toThrow(refused);
  });
});

describe('fiscal calendars', () => {
  it.each([undefined, 0, 13, 1.5])('are refused that start in month %s', (fiscalStartMonth) => {
    const start = fiscalStartMonth === undefined ? {} : { fiscalStartMonth };
    for (const kind of ['fiscal-year', 'fiscal-month'] as const) {
      const calendar = { kind, zone: 'UTC', ...start };
      const refused = expect.objectContaining({ code: 'malformed_calendar' });
      expect(() => parsePeriod('FY2027', calendar)).toThrow(refused);
    }
  });

  it('have twelve periods a year that fill it, whatever month they start in', () => {
    for (let first = 1; first <= 12; first += 1) {
      const months: PeriodCalendar = { kind: 'fiscal-month', zone: 'UTC', fiscalStartMonth: first };
      const year = periodBounds('FY2027', { ...months, kind: 'fiscal-year' });
      const periods = periodsBetween('FY2027-P01', 'FY2027-P12', months).map((period) => periodBounds(period, months));
      expect(periods).toHaveLength(12);
      expect([periods[0]?.starts, periods[11]?.ends]).toEqual([year.starts, year.ends]);
      expect(new Date(Date.parse(year.ends) - 1).getUTCFullYear()).toBe(2027);
    }
  });
});

describe('the periods between two', () => {
  it('include both, in order', () => {
    expect(periodsBetween('2026-11', '2027-02', month('UTC'))).toEqual(['2026-11', '2026-12', '2027-01', '2027-02']);
    expect(periodsBetween('2026-09', '2026-09', month('UTC'))).toEqual(['2026-09']);
  });

  it('are none when the range is reversed', () => {
    expect(periodsBetween('2026-10', '2026-09', month('UTC'))).toEqual([]);
  });
});
