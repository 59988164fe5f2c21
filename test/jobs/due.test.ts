import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { periodsAhead } from '../../src/jobs/due.ts';
import { parseRule, periodCalendar } from '../../src/jobs/rule.ts';
import { periodBounds } from '../../src/kernel/period.ts';

const body: unknown = JSON.parse(readFileSync(join(import.meta.dirname, '../../rules/settlement.json'), 'utf8'));
const ruleFrom = (first: string, zone = 'Europe/London') => parseRule({ ...(body as object), first, zone }, 'the test');
const names = (first: string, now: string) => periodsAhead(ruleFrom(first), now).map(({ period }) => period);

describe('the periods whose rows are made ahead of need', () => {
  it('go from the first of the rule to the one after the current, in the order of time', () => {
    expect(names('2026-09', '2026-11-30T12:00:00Z')).toEqual(['2026-09', '2026-10', '2026-11', '2026-12']);
  });

  it('are the same whether the clock was asked earlier, later or never before', () => {
    const march = ['2026-01', '2026-02', '2026-03', '2026-04'];
    expect(names('2026-01', '2026-03-31T22:59:59Z')).toEqual(march);
    expect(names('2026-01', '2026-05-01T00:00:00Z')).toEqual([...march, '2026-05', '2026-06']);
    expect(names('2026-01', '2026-03-01T00:00:00Z')).toEqual(march);
    expect(names('2026-02', '2026-03-01T00:00:00Z')).toEqual(march.slice(1));
  });

  it('have the bounds of their own zone, each ending where the next one starts', () => {
    for (const zone of ['Europe/London', 'America/New_York']) {
      const rule = ruleFrom('2026-01', zone);
      periodsAhead(rule, '2026-02-15T00:00:00Z');
      const ahead = periodsAhead(rule, '2026-06-15T00:00:00Z');
      expect(ahead).toEqual(ahead.map(({ period }) => periodBounds(period, periodCalendar(rule))));
      expect(ahead.slice(1).map(({ starts }) => starts)).toEqual(ahead.slice(0, -1).map(({ ends }) => ends));
    }
  });

  it('are none where the rule begins after the next period', () => {
    expect(names('2027-06', '2026-11-30T12:00:00Z')).toEqual([]);
  });
});
