import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type PeriodCalendar,
  periodBounds,
  periodClosedBy,
  periodContaining,
  periodsBetween,
} from '../../src/kernel/period.ts';
import {
  boundaryIn,
  changesByIntl,
  clockByIntl,
  hasZdump,
  isBoundaryByIntl,
  isSameRelease,
  localSeconds,
  stretchesByZdump,
  ZONES,
} from './zone-oracle.ts';

const second = (instant: string): number => Date.parse(instant) / 1000;
const instantOf = (at: number): string => new Date(at * 1000).toISOString().replace('.000Z', 'Z');
const years = periodsBetween('1900', '2099', { kind: 'year', zone: 'UTC' });

/** The local text of a second of the local clock, `2026-10-25T02:59:59`. */
const localText = (at: number): string => new Date(at * 1000).toISOString().slice(0, 19);

const changes = ZONES.flatMap((zone) => changesByIntl(zone, 1990, 2030).map((at) => ({ zone, at })));

describe('period boundaries', () => {
  it('cover 60 zones and 200 years', () => {
    expect(new Set(ZONES).size).toBeGreaterThanOrEqual(60);
    expect(years).toHaveLength(200);
  });

  it.skipIf(!hasZdump())(
    'are those of zdump, in every zone and year (skipped where there is no zdump)',
    () => {
      const different: string[] = [];
      for (const [index, zone] of ZONES.entries()) {
        const stretches = stretchesByZdump(zone);
        for (const [step, year] of years.entries()) {
          // One month a year, every month in turn: its start and its end.
          const period = `${year}-${String(1 + ((5 * step + index) % 12)).padStart(2, '0')}`;
          const { startsOn, endsOn, starts, ends } = periodBounds(period, { kind: 'month', zone });
          for (const [on, at] of [
            [startsOn, second(starts)],
            [endsOn, second(ends)],
          ] as const) {
            const local = localSeconds(on);
            if (at === boundaryIn(stretches, local)) continue;
            // Another release of the zone files may know another clock; ours is Node's, which must then confirm us.
            if (isSameRelease() || !isBoundaryByIntl(zone, at, local)) different.push(`${zone} ${on}`);
          }
        }
      }
      expect(different).toEqual([]);
    },
    60_000,
  );

  it('are where the clock, read by Intl, passes the first of a month for good', () => {
    const month = fc.tuple(fc.constantFrom(...years), fc.integer({ min: 1, max: 12 }));
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), month, (zone, [year, number]) => {
        const period = `${year}-${String(number).padStart(2, '0')}`;
        const { starts } = periodBounds(period, { kind: 'month', zone });
        expect(isBoundaryByIntl(zone, second(starts), localSeconds(`${period}-01`))).toBe(true);
      }),
      { numRuns: 2000 },
    );
  }, 60_000);

  it('are there for days and hours too, close to every kind of change of the clock', () => {
    expect(changes.length).toBeGreaterThan(2000);
    const kind = fc.constantFrom('day' as const, 'hour' as const);
    fc.assert(
      fc.property(fc.constantFrom(...changes), kind, fc.integer({ min: -4, max: 4 }), ({ zone, at }, of, steps) => {
        const near = clockByIntl(zone, at) + steps * (of === 'day' ? 43_200 : 1800);
        const period = localText(near).slice(0, of === 'day' ? 10 : 13);
        const { starts } = periodBounds(period, { kind: of, zone });
        const local = localSeconds(of === 'day' ? period : `${period}:00:00`);
        expect(isBoundaryByIntl(zone, second(starts), local)).toBe(true);
      }),
      { numRuns: 3000 },
    );
  }, 60_000);
});

describe('the period that holds an instant', () => {
  it('is the one and only, also close to a change of the clock, and never one that is over', () => {
    const kind = fc.constantFrom('day' as const, 'hour' as const, 'month' as const);
    const shift = fc.integer({ min: -7200, max: 7200 });
    fc.assert(
      fc.property(fc.constantFrom(...changes), kind, shift, ({ zone, at }, of, seconds) => {
        const calendar: PeriodCalendar = { kind: of, zone };
        const bounds = periodBounds(periodContaining(instantOf(at + seconds), calendar), calendar);
        expect(second(bounds.starts)).toBeLessThanOrEqual(at + seconds);
        expect(second(bounds.ends)).toBeGreaterThan(at + seconds);
        // The clock may already read a later period's time (until it goes back), but never one of a period that is over.
        const clock = localText(clockByIntl(zone, at + seconds));
        expect(clock.slice(0, bounds.period.length) >= bounds.period).toBe(true);
      }),
      { numRuns: 2000 },
    );
  }, 60_000);
});

describe('changes of the clock', () => {
  const bounds = (kind: 'day' | 'hour', zone: string, period: string): string => {
    const { starts, ends } = periodBounds(period, { kind, zone });
    return `${starts} ${ends}`;
  };

  it('that repeat an hour make one period of both', () => {
    expect(bounds('hour', 'Europe/Berlin', '2026-10-25T02')).toBe('2026-10-25T00:00:00Z 2026-10-25T02:00:00Z');
    expect(bounds('hour', 'America/New_York', '2026-11-01T01')).toBe('2026-11-01T05:00:00Z 2026-11-01T07:00:00Z');
    const hour: PeriodCalendar = { kind: 'hour', zone: 'Europe/Berlin' };
    expect(periodContaining('2026-10-25T00:30:00Z', hour)).toBe('2026-10-25T02');
    expect(periodContaining('2026-10-25T01:30:00Z', hour)).toBe('2026-10-25T02');
  });

  it('that repeat half an hour make one period of an hour and a half', () => {
    expect(bounds('hour', 'Australia/Lord_Howe', '2026-04-05T01')).toBe('2026-04-04T14:00:00Z 2026-04-04T15:30:00Z');
  });

  it('that leave an hour out leave its period, empty', () => {
    expect(bounds('hour', 'Europe/Berlin', '2026-03-29T02')).toBe('2026-03-29T01:00:00Z 2026-03-29T01:00:00Z');
    const hour: PeriodCalendar = { kind: 'hour', zone: 'Europe/Berlin' };
    expect(periodContaining('2026-03-29T01:00:00Z', hour)).toBe('2026-03-29T03');
    // Otherwise no nominal time would ever close the hour from 01:00.
    expect(periodClosedBy('2026-03-29T01:05:00Z', hour)).toBe('2026-03-29T01');
    expect(periodClosedBy('2026-03-29T00:05:00Z', hour)).toBe('2026-03-29T00');
  });

  it('that leave out half an hour leave the other half', () => {
    expect(bounds('hour', 'Australia/Lord_Howe', '2026-10-04T02')).toBe('2026-10-03T15:30:00Z 2026-10-03T16:00:00Z');
  });

  it('that leave midnight out start the day with its first instant', () => {
    expect(bounds('day', 'America/Sao_Paulo', '2017-10-15')).toBe('2017-10-15T03:00:00Z 2017-10-16T02:00:00Z');
    // Toronto's clock went from 23:30 to 00:30 on 31 March 1919.
    expect(bounds('day', 'America/Toronto', '1919-03-31')).toBe('1919-03-31T04:30:00Z 1919-04-01T04:00:00Z');
  });

  it('that repeat midnight start the day once, with the first', () => {
    expect(bounds('day', 'America/Havana', '2026-11-01')).toBe('2026-11-01T04:00:00Z 2026-11-02T05:00:00Z');
  });

  it('that go back from after midnight to before it keep the whole old day together', () => {
    expect(bounds('day', 'America/St_Johns', '2006-10-28')).toBe('2006-10-28T02:30:00Z 2006-10-29T03:30:00Z');
    const day: PeriodCalendar = { kind: 'day', zone: 'America/St_Johns' };
    expect(periodContaining('2006-10-29T02:30:30Z', day)).toBe('2006-10-28');
    expect(periodContaining('2006-10-29T03:29:59Z', day)).toBe('2006-10-28');
  });

  it('that leave a day out leave its period, empty, and its month shorter', () => {
    const apia = (period: string): string => bounds('day', 'Pacific/Apia', period);
    expect(apia('2011-12-29')).toBe('2011-12-29T10:00:00Z 2011-12-30T10:00:00Z');
    expect(apia('2011-12-30')).toBe('2011-12-30T10:00:00Z 2011-12-30T10:00:00Z');
    expect(apia('2011-12-31')).toBe('2011-12-30T10:00:00Z 2011-12-31T10:00:00Z');
    expect(periodContaining('2011-12-30T10:00:00Z', { kind: 'day', zone: 'Pacific/Apia' })).toBe('2011-12-31');
    const december = periodBounds('2011-12', { kind: 'month', zone: 'Pacific/Apia' });
    expect(second(december.ends) - second(december.starts)).toBe(30 * 86_400);
  });

  it('that leave the last day of a year out end the year with the day before', () => {
    const year = periodBounds('1994', { kind: 'year', zone: 'Pacific/Kiritimati' });
    expect([year.starts, year.ends]).toEqual(['1994-01-01T10:00:00Z', '1994-12-31T10:00:00Z']);
  });
});
