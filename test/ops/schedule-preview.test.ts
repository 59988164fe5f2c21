import { expect, test } from 'vitest';
import { parseRule } from '../../src/jobs/rule.ts';
import { previewSchedule } from '../../src/ops/schedule-preview.ts';
import { tinyRule } from '../support/tiny-job.ts';

const rule = (changes: Readonly<Record<string, unknown>>) => parseRule(tinyRule(changes), 'here');

test('a monthly rule previews each month with the firing that closes it', () => {
  const due = previewSchedule(rule({ zone: 'Asia/Shanghai' }), '2026-11-30T20:00:00Z', 3);
  expect(due.map(({ at, period }) => [at, period])).toEqual([
    ['2026-12-31T18:00:00Z', '2026-12'],
    ['2027-01-31T18:00:00Z', '2027-01'],
    ['2027-02-28T18:00:00Z', '2027-02'],
  ]);
});

test('the preview names half-open bounds in the zone of the rule, as instants', () => {
  const [due] = previewSchedule(rule({ zone: 'America/St_Johns' }), '2026-11-15T00:00:00Z', 1);
  expect(due).toMatchObject({ period: '2026-11', starts: '2026-11-01T02:30:00Z', ends: '2026-12-01T03:30:00Z' });
});

test('a weekly rule previews ISO weeks over the turn of a year', () => {
  const weekly = rule({ period: 'week', first: '2026-W01', calendar: { dayOfWeek: 1, hour: 6, minute: 30 } });
  const due = previewSchedule(weekly, '2026-12-20T00:00:00Z', 3);
  expect(due.map(({ period }) => period)).toEqual(['2026-W51', '2026-W52', '2026-W53']);
});

test('an hourly rule fires every hour of the clock: once in a repeated one, never in one that is jumped over', () => {
  const hourly = rule({
    zone: 'America/New_York',
    period: 'hour',
    first: '2026-01-01T00',
    calendar: { minute: 5 },
  });
  const autumn = previewSchedule(hourly, '2026-11-01T04:00:00Z', 3);
  expect(autumn.map(({ at, period, how }) => [at, period, how])).toEqual([
    ['2026-11-01T04:05:00Z', '2026-10-31T23', 'calendar'],
    ['2026-11-01T05:05:00Z', '2026-11-01T00', 'repeated'],
    ['2026-11-01T07:05:00Z', '2026-11-01T01', 'calendar'],
  ]);
  const spring = previewSchedule(hourly, '2026-03-08T06:00:00Z', 2);
  expect(spring.map(({ period }) => period)).toEqual(['2026-03-08T00', '2026-03-08T01']);
});
