import { describe, expect, it } from 'vitest';
import { isScheduled, nominalTimeOf, occasionsOf } from '../../src/jobs/occasion.ts';
import { type JobRule, parseRule } from '../../src/jobs/rule.ts';
import { periodClosedBy } from '../../src/kernel/period.ts';
import { tinyRule } from '../support/tiny-job.ts';
import { compareWithModel } from './random-rules.ts';

const rule = (changes: Readonly<Record<string, unknown>>) => parseRule(tinyRule(changes), 'here');
const calendarOf = ({ period: kind, zone }: JobRule) => ({ kind, zone });

describe('every period that ended has an occasion', () => {
  // C61: what used to stop a job for ever.
  it.each<[string, Record<string, unknown>, string, string, string]>([
    [
      'the month before a gap',
      { zone: 'Australia/Sydney', calendar: { dayOfMonth: 1, hour: 2, minute: 30 } },
      '2023-09',
      '2023-09-30T16:00:00Z',
      'gap',
    ],
    [
      'the month before a gap, where gaps are skipped',
      { zone: 'Australia/Sydney', calendar: { dayOfMonth: 1, hour: 2, minute: 30, gap: 'skip' } },
      '2023-09',
      '2023-09-30T14:00:00Z',
      'check',
    ],
    [
      'a month that is followed by one without a 31st',
      { zone: 'UTC', calendar: { dayOfMonth: 31, hour: 2, minute: 0 } },
      '2027-01',
      '2027-02-01T00:00:00Z',
      'caught_up',
    ],
    [
      'a day of a week that fires on Mondays',
      { zone: 'Europe/London', period: 'day', calendar: { dayOfWeek: 1, hour: 6, minute: 0 } },
      '2026-12-08',
      '2026-12-09T00:00:00Z',
      'caught_up',
    ],
    [
      'a day that ends in a gap',
      { zone: 'America/Santiago', period: 'day', calendar: { hour: 0, minute: 30 } },
      '2026-09-05',
      '2026-09-06T04:00:00Z',
      'gap',
    ],
    [
      'the last month of the last year',
      { zone: 'Asia/Shanghai', calendar: { dayOfMonth: 1, hour: 2, minute: 0 } },
      '2100-12',
      '2100-12-31T16:00:00Z',
      'caught_up',
    ],
    [
      'the last business day with a holiday',
      {
        zone: 'Europe/London',
        calendar: {
          dayOfMonth: 25,
          hour: 6,
          minute: 0,
          businessDays: { holidays: ['2026-12-25', '2026-12-28'], otherwise: 'next' },
        },
      },
      '2026-11',
      '2026-12-29T06:00:00Z',
      'moved',
    ],
  ])('%s', (_, changes, period, at, how) => {
    const of = rule({ first: period, ...changes });
    expect(occasionsOf(of, period, period).map((one) => [one.at, one.how, one.period])).toEqual([[at, how, period]]);
    expect(nominalTimeOf(of, period)).toBe(at);
    expect(periodClosedBy(at, calendarOf(of))).toBe(period);
    expect(isScheduled(of, at)).toBe(how !== 'check');
  });

  it('and one that never was has none, but its neighbours', () => {
    const apia = rule({ zone: 'Pacific/Apia', period: 'day', first: '2011-12-01', calendar: { hour: 0, minute: 30 } });
    expect(occasionsOf(apia, '2011-12-29', '2012-01-01').map(({ period }) => period)).toEqual([
      '2011-12-29',
      '2011-12-31',
      '2012-01-01',
    ]);
    expect(() => nominalTimeOf(apia, '2011-12-30')).toThrow(expect.objectContaining({ code: 'no_such_local_time' }));
  });
});

describe('a random rule', () => {
  // test/long/occasions.test.ts compares five thousand of them.
  it('gives each period its occasions as a small model does: none without an end, none twice, no gap and no overlap', () => {
    const { calendar = 0, caught_up = 0, repeated = 0 } = compareWithModel(300);
    // The rarer ones are counted there too.
    expect(Math.min(calendar, caught_up, repeated)).toBeGreaterThan(0);
  }, 60_000);
});
