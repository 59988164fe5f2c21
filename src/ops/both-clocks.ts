import { Temporal } from 'temporal-polyfill';
import type { Instant } from '../kernel/sql.ts';
import { clockIn, type InZone, readingAt } from '../kernel/zone-clock.ts';

/** An instant for people: the job's own clock, then UTC, to the second. `2026-10-01 02:00:03 (2026-09-30T18:00:03Z)`. */
export function bothClocks(instant: Instant, zone: InZone): string {
  const at = Temporal.Instant.from(instant).round({ smallestUnit: 'second', roundingMode: 'floor' });
  return `${localClock(instant, zone)} (${at.toString()})`;
}

/** What the two times of bothClocks are; said once, above all of them. */
export function clocksNote({ zone }: InZone): string {
  return `Times are those of ${zone}, and in brackets UTC.`;
}

/** What a clock in the zone shows at the instant, `2026-10-01 02:00:03`, by the ledger's table where it has one. */
export function localClock(instant: Instant, zone: InZone): string {
  const local = readingAt(Temporal.Instant.from(instant), clockIn(zone));
  return local.toString({ smallestUnit: 'second', roundingMode: 'floor' }).replace('T', ' ');
}

/** The instant some milliseconds later. */
export function later(instant: Instant, ms: number): Instant {
  return Temporal.Instant.from(instant).add({ milliseconds: ms }).toString();
}

/** Milliseconds from one instant to another; negative when `to` comes first. */
export function between(from: Instant, to: Instant): number {
  return Temporal.Instant.from(from).until(Temporal.Instant.from(to)).total('milliseconds');
}

/** A length of time in words: `850 ms`, `12 s`, `3 min 5 s`, `2 h 40 min`, `3 days 4 h`. */
export function inWords(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return twoUnits(seconds, 60, 'min', 1, 's');
  if (seconds < 86_400) return twoUnits(seconds, 3_600, 'h', 60, 'min');
  return twoUnits(seconds, 86_400, seconds < 172_800 ? 'day' : 'days', 3_600, 'h');
}

function twoUnits(seconds: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((seconds % large) / small);
  return `${Math.floor(seconds / large)} ${largeName}${rest === 0 ? '' : ` ${rest} ${smallName}`}`;
}
