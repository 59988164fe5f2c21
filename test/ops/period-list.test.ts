import fc from 'fast-check';
import { expect, test } from 'vitest';
import { periodList } from '../../src/ops/period-list.ts';

const YEAR = Array.from({ length: 12 }, (_, at) => `2026-${String(at + 1).padStart(2, '0')}`);

test.each([
  [[], ''],
  [['2026-08'], '2026-08'],
  [['2026-08', '2026-10'], '2026-08, 2026-10'],
  [['2026-08', '2026-09'], '2026-08, 2026-09'],
  [['2026-08', '2026-09', '2026-10'], '2026-08 to 2026-10'],
  [['2026-01', '2026-08', '2026-09', '2026-10', '2026-12'], '2026-01, 2026-08 to 2026-10, 2026-12'],
])('the periods %j are named %s', (periods, text) => {
  expect(periodList(periods, YEAR)).toBe(text);
});

test('many that do not follow one another are named by the first and the last, as a between', () => {
  const days = Array.from({ length: 20 }, (_, at) => `2026-10-${String(at + 1).padStart(2, '0')}`);
  const every = days.filter((_, at) => at % 2 === 0);
  expect(periodList(every, days)).toBe('between 2026-10-01 and 2026-10-19');
});

test('no list names a period as missing that is not', () => {
  fc.assert(
    fc.property(fc.subarray(YEAR), (periods) => {
      const text = periodList(periods, YEAR);
      if (text.startsWith('between')) return;
      const parts = text === '' ? [] : text.split(', ');
      const named = parts.flatMap((part) => {
        const [from = '', to = from] = part.split(' to ');
        return YEAR.filter((month) => month >= from && month <= to);
      });
      expect(named).toEqual(periods);
    }),
  );
});
