import { Temporal } from 'temporal-polyfill';
import { describe, expect, it } from 'vitest';
import { checkCalendar, isPlain, matchOf, type ScheduleCalendar } from '../../src/kernel/calendar.ts';

/** The dates of a range on which a calendar fires, as `MM-DD`, with `*` behind those that a firing was moved to. */
function dates(fields: Partial<ScheduleCalendar>, from: string, to: string): string[] {
  const calendar: ScheduleCalendar = { zone: 'Europe/London', hour: 2, minute: 0, ...fields };
  checkCalendar(calendar);
  const found: string[] = [];
  const last = Temporal.PlainDate.from(to);
  for (
    let date = Temporal.PlainDate.from(from);
    Temporal.PlainDate.compare(date, last) <= 0;
    date = date.add({ days: 1 })
  ) {
    const match = matchOf(calendar, date);
    if (match !== 'no') found.push(date.toString().slice(5) + (match === 'moved' ? '*' : ''));
  }
  return found;
}

/** Christmas 2026 is a Friday, and the bank holiday of Boxing Day falls on the Monday after. */
const ENGLAND = { weekend: [6, 7], holidays: ['2026-12-25', '2026-12-28', '2027-01-01'] };

describe('a calendar fires', () => {
  it.each<[string, Partial<ScheduleCalendar>, string, string, string[]]>([
    [
      'on the last day of each month',
      { dayOfMonth: -1 },
      '2028-01-01',
      '2028-04-30',
      ['01-31', '02-29', '03-31', '04-30'],
    ],
    ['two days before it', { dayOfMonth: -3 }, '2027-01-01', '2027-03-31', ['01-29', '02-26', '03-29']],
    [
      'on several days of several months',
      { month: [1, 7], dayOfMonth: [1, 15] },
      '2027-01-01',
      '2027-12-31',
      ['01-01', '01-15', '07-01', '07-15'],
    ],
    [
      'in no month that lacks the 31st',
      { dayOfMonth: 31 },
      '2027-01-01',
      '2027-07-31',
      ['01-31', '03-31', '05-31', '07-31'],
    ],
    [
      'on the second Tuesday',
      { dayOfWeek: 2, nthDayOfWeek: 2 },
      '2026-12-01',
      '2027-02-28',
      ['12-08', '01-12', '02-09'],
    ],
    ['on the last Friday', { dayOfWeek: 5, nthDayOfWeek: -1 }, '2026-12-01', '2027-02-28', ['12-25', '01-29', '02-26']],
    [
      'on a fifth Sunday only where there is one',
      { dayOfWeek: 7, nthDayOfWeek: 5 },
      '2026-11-01',
      '2027-01-31',
      ['11-29', '01-31'],
    ],
    [
      'on the third business day',
      { nthBusinessDay: 3, businessDays: { ...ENGLAND, otherwise: 'skip' } },
      '2026-12-01',
      '2027-01-31',
      ['12-03', '01-06'],
    ],
    [
      'on the last business day',
      { nthBusinessDay: -1, businessDays: { ...ENGLAND, otherwise: 'skip' } },
      '2026-12-01',
      '2027-01-31',
      ['12-31', '01-29'],
    ],
    [
      'on the first business day, without holidays where none are listed',
      { nthBusinessDay: 1 },
      '2026-12-01',
      '2027-01-31',
      ['12-01', '01-01'],
    ],
    [
      'not on a holiday',
      { dayOfMonth: 25, businessDays: { ...ENGLAND, otherwise: 'skip' } },
      '2026-11-01',
      '2027-01-31',
      ['11-25', '01-25'],
    ],
    [
      'on the next business day after a holiday and a weekend',
      { dayOfMonth: 25, businessDays: { ...ENGLAND, otherwise: 'next' } },
      '2026-11-01',
      '2027-01-31',
      ['11-25', '12-29*', '01-25'],
    ],
    [
      'on the one before',
      { dayOfMonth: 28, businessDays: { ...ENGLAND, otherwise: 'previous' } },
      '2026-12-01',
      '2027-01-31',
      ['12-24*', '01-28'],
    ],
    [
      'in the month before, where the day before lies there',
      { dayOfMonth: 1, businessDays: { ...ENGLAND, otherwise: 'previous' } },
      '2026-12-01',
      '2027-01-31',
      ['12-01', '12-31*'],
    ],
    [
      'in a week that ends on Thursday',
      { dayOfMonth: -1, businessDays: { weekend: [5, 6], holidays: [], otherwise: 'previous' } },
      '2026-07-01',
      '2026-10-31',
      ['07-30*', '08-31', '09-30', '10-29*'],
    ],
    [
      'on no excluded date, nor is it moved from there',
      { dayOfWeek: 4, except: ['2026-12-24', '2026-12-31'] },
      '2026-12-10',
      '2027-01-07',
      ['12-10', '12-17', '01-07'],
    ],
  ])('%s', (_, fields, from, to, expected) => {
    expect(dates(fields, from, to)).toEqual(expected);
  });

  it('until the year 2100', () => {
    expect(dates({ month: 2, dayOfMonth: 29 }, '2092-01-01', '2108-12-31')).toEqual(['02-29', '02-29']);
  });
});

describe('a calendar', () => {
  it('is plain where Temporal’s own calendars say the same of every date', () => {
    const plain: ScheduleCalendar = { zone: 'UTC', month: [1, 2], dayOfMonth: 31, dayOfWeek: 1, hour: 2, minute: 0 };
    expect(isPlain(plain)).toBe(true);
    expect(isPlain({ ...plain, except: [] })).toBe(true);
    for (const more of [
      { dayOfMonth: [1, -1] },
      { nthDayOfWeek: 1 },
      { nthBusinessDay: 1 },
      { businessDays: { weekend: [], holidays: [], otherwise: 'skip' } },
      { except: ['2027-01-01'] },
    ] as const)
      expect(isPlain({ ...plain, ...more })).toBe(false);
  });

  it.each([
    { month: 13 },
    { month: 0 },
    { month: [1, 13] },
    { dayOfMonth: 0 },
    { dayOfMonth: 32 },
    { dayOfMonth: -32 },
    { month: 2, dayOfMonth: 30 },
    { month: 4, dayOfMonth: 31 },
    { month: [4, 6], dayOfMonth: -31 },
    { dayOfWeek: 0 },
    { dayOfWeek: 8 },
    { dayOfWeek: 1, nthDayOfWeek: 6 },
    { nthDayOfWeek: 1 },
    { nthBusinessDay: 24 },
    { hour: 24 },
    { hour: -1 },
    { minute: 60 },
    { minute: 1.5 },
    { minute: [0, 60] },
    { except: ['2026-02-30'] },
    { except: ['1 May'] },
    { businessDays: { weekend: [1, 2, 3, 4, 5, 6, 7], holidays: [], otherwise: 'skip' } },
    { businessDays: { weekend: [], holidays: ['2026-13-01'], otherwise: 'skip' } },
  ] as Partial<ScheduleCalendar>[])('with %j is refused', (fields) => {
    const calendar: ScheduleCalendar = { zone: 'UTC', hour: 2, minute: 0, ...fields };
    expect(() => checkCalendar(calendar)).toThrow(expect.objectContaining({ code: 'malformed_calendar' }));
  });

  it('of an unknown zone is refused', () => {
    const refused = expect.objectContaining({ code: 'unknown_zone', at: 'Asia/Peking' });
    expect(() => checkCalendar({ zone: 'Asia/Peking', minute: 0 })).toThrow(refused);
  });
});
