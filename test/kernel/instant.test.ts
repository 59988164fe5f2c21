import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareInstants, instantPlus, normaliseInstant } from '../../src/kernel/instant.ts';
import { localDate } from '../../src/kernel/zone-clock.ts';

describe('an instant', () => {
  it.each([
    ['2026-09-30T18:00:00Z', '2026-09-30T18:00:00Z'],
    ['2026-10-01T02:00:00+08:00', '2026-09-30T18:00:00Z'],
    ['2026-10-01T02:00+0800', '2026-09-30T18:00:00Z'],
    ['2026-09-30t18:00:00.000z', '2026-09-30T18:00:00Z'],
    ['2026-09-30T18:00:00.500Z', '2026-09-30T18:00:00.5Z'],
    ['2026-09-30T18:00:00.000001Z', '2026-09-30T18:00:00.000001Z'],
    ['2026-09-30 18:00:00.25+00', '2026-09-30T18:00:00.25Z'],
    ['2026-09-30 23:45:00+05:45', '2026-09-30T18:00:00Z'],
  ])('%s has the one form %s', (text, form) => {
    expect(normaliseInstant(text)).toBe(form);
  });

  it.each([
    '2026-09-30T18:00:00',
    '2026-09-30',
    '2026-09-30T18Z',
    '2026-02-30T18:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-09-30T25:00:00Z',
    '2026-09-30T24:00:00Z',
    '2026-12-31T23:59:60Z',
    '2026-09-30T18:00:00.1234567Z',
    '+102026-09-30T18:00:00Z',
    '2026-09-30T18:00:00Z[Asia/Shanghai]',
    '2026-09-30T18:00:00+25:00',
    '1790791200',
    'now',
    'infinity',
    '',
    ' 2026-09-30T18:00:00Z',
    '2026-09-30T18:00:00Z\n',
  ])('%j is refused', (text) => {
    const refused = expect.objectContaining({ code: 'malformed_instant', at: text });
    expect(() => normaliseInstant(text)).toThrow(refused);
  });

  it('is normalised once and for all, and means what it meant', () => {
    const micros = fc.integer({ min: -5_000_000_000, max: 20_000_000_000 }).map((n) => n * 1000);
    fc.assert(
      fc.property(micros, fc.integer({ min: -720, max: 840 }), (epoch, offset) => {
        const shifted = new Date(epoch + offset * 60_000).toISOString().slice(0, -1);
        const [sign, minutes] = offset < 0 ? ['-', -offset] : ['+', offset];
        const [hh, mm] = [Math.floor(minutes / 60), minutes % 60].map((n) => String(n).padStart(2, '0'));
        const form = normaliseInstant(`${shifted}${sign}${hh}:${mm}`);
        expect(Date.parse(form)).toBe(epoch);
        expect(normaliseInstant(form)).toBe(form);
      }),
    );
  });
});

describe('instants', () => {
  it('are ordered by time, not by their letters', () => {
    expect(compareInstants('2026-09-30T18:00:00.5Z', '2026-09-30T18:00:00Z')).toBe(1);
    expect(compareInstants('2026-10-01T02:00:00+08:00', '2026-09-30T18:00:00Z')).toBe(0);
    expect(compareInstants('2026-09-30T17:59:59Z', '2026-09-30T18:00:00.000001Z')).toBe(-1);
  });
});

describe('an instant and a span of time', () => {
  it.each([
    ['2026-09-30T18:00:00Z', { hours: 6 }, '2026-10-01T00:00:00Z'],
    ['2026-12-31T23:59:59.5Z', { minutes: 1, seconds: 1 }, '2027-01-01T00:01:00.5Z'],
    ['2026-10-01T02:00:00+08:00', { minutes: -10 }, '2026-09-30T17:50:00Z'],
  ])('%s and %j make %s', (instant, time, sum) => {
    expect(instantPlus(instant, time)).toBe(sum);
  });
});

describe('the local date of an instant', () => {
  it.each([
    ['2026-09-30T18:00:00Z', 'Asia/Shanghai', '2026-10-01'],
    ['2026-09-30T18:00:00Z', 'UTC', '2026-09-30'],
    ['2026-09-30T10:00:00Z', 'Pacific/Kiritimati', '2026-10-01'],
    ['2026-09-30T09:59:59Z', 'Pacific/Kiritimati', '2026-09-30'],
    ['2026-10-01T06:59:59Z', 'America/Los_Angeles', '2026-09-30'],
    ['2011-12-30T10:00:00Z', 'Pacific/Apia', '2011-12-31'],
    ['2011-12-30T09:59:59Z', 'Pacific/Apia', '2011-12-29'],
  ])('%s in %s is %s', (instant, zone, date) => {
    expect(localDate(instant, { zone })).toBe(date);
  });

  it('is refused in a zone that does not exist', () => {
    expect(() => localDate('2026-09-30T18:00:00Z', { zone: 'Asia/Peking' })).toThrow(
      expect.objectContaining({ code: 'unknown_zone', at: 'Asia/Peking' }),
    );
  });
});
