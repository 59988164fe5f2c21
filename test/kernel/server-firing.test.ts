import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ScheduleCalendar } from '../../src/kernel/calendar.ts';
import { firstServerDifference, serverFirings } from '../../src/kernel/server-firing.ts';

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

describe('what Temporal’s server makes of a calendar', () => {
  it(`is what ${recording.recordedFrom} answered`, () => {
    expect(recording.cases.length).toBeGreaterThan(150);
    for (const { calendar, from, to, instants } of recording.cases) {
      expect({ calendar, from, instants: serverFirings(calendar, from, to) }).toEqual({ calendar, from, instants });
    }
  }, 30_000);

  it('differs from ours at a gap and at a repeated time, and nowhere else', () => {
    const [from, to] = ['2026-01-01T00:00:00Z', '2029-01-01T00:00:00Z'];
    const at = (zone: string, hour: number, more: Partial<ScheduleCalendar> = {}) =>
      firstServerDifference({ zone, hour, minute: 30, ...more }, from, to);
    expect(at('Australia/Sydney', 2)).toBe('2026-04-04T15:30:00Z');
    expect(at('Australia/Sydney', 2, { repeated: 'second', gap: 'skip' })).toBeNull();
    expect(at('America/New_York', 1, { repeated: 'second' })).toBe('2026-11-01T05:30:00Z');
    expect(at('Europe/London', 6)).toBeNull();
    expect(at('Asia/Shanghai', 2)).toBeNull();
    expect(at('America/New_York', 2, { dayOfMonth: 1 })).toBeNull();
  });
});
