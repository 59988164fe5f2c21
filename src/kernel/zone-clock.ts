import { Temporal } from 'temporal-polyfill';
import { instantOf } from './instant.ts';
import type { Instant } from './sql.ts';
import { checkZone } from './zone.ts';

/** From second `at` of the epoch on, the zone's clock is `offset` seconds ahead of UTC. */
export interface Transition {
  readonly at: number;
  readonly offset: number;
}

/**
 * What a zone's clock reads at every instant. There are several tables of the world's time zones on a machine, and they differ in
 * what they know of the newest laws, so that a clock always says whose facts it goes by.
 */
export interface ZoneClock {
  readonly zone: string;
  /** Names the facts: who says so, and in which version. It is stored with what was decided by them. */
  readonly facts: string;
  /** Seconds ahead of UTC at a second of the epoch. */
  offsetAt(second: number): number;
  /** The changes after `from` and up to `to`, in seconds of the epoch, in order. */
  transitionsBetween(from: number, to: number): readonly Transition[];
}

/** A zone's clock by a list of its changes, ascending; before the first, what it reads from there on is taken for granted. */
export function clockFrom(table: {
  readonly zone: string;
  readonly facts: string;
  readonly transitions: readonly Transition[];
}): ZoneClock {
  const { zone, facts, transitions } = table;
  const before = transitions[0]?.offset ?? 0;
  return {
    zone,
    facts,
    offsetAt: (second) => transitions[countUpTo(transitions, second) - 1]?.offset ?? before,
    transitionsBetween: (from, to) => transitions.slice(countUpTo(transitions, from), countUpTo(transitions, to)),
  };
}

/**
 * The changes of a clock that goes by `old` until an instant and by `young` from it on. Where they differ there, the instant itself
 * is a change, at which the clock jumps from what the one reads to what the other does: no instant is lost, and none counted twice.
 */
export function clockContinued(old: ZoneClock, young: ZoneClock, from: Instant): readonly Transition[] {
  const second = secondOf(instantOf(from));
  const [first, last] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  const kept = old.transitionsBetween(first, second - 1);
  const begun = { at: second, offset: young.offsetAt(second) };
  const isChange = begun.offset !== old.offsetAt(second - 1);
  return [...kept, ...(isChange ? [begun] : []), ...young.transitionsBetween(second, last)];
}

/**
 * From when a young table can hold where an old one decided until an instant: from there, or, where that would put the clock back,
 * once the young one has come to what the old one reads there. Else the time of a bound that is stored would come again, and the
 * bound with it.
 */
export function holdsFrom(old: ZoneClock, young: ZoneClock, decidedUntil: Instant): Instant {
  const at = instantOf(decidedUntil);
  return instantText(Math.max(secondOf(at), boundary(readingAt(at, old), young)));
}

/** How many of the transitions come at or before the second. */
function countUpTo(transitions: readonly Transition[], second: number): number {
  let low = 0;
  let high = transitions.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((transitions[middle]?.at ?? 0) <= second) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * A zone's clock by the table that this process brought along. It decides nothing that is stored: for that the ledger keeps a
 * table of its own (onceper.zone_table), and two workers of different releases of Node must not differ.
 */
export function clockOfProcess(zone: string): ZoneClock {
  const known = ofProcess.get(zone);
  if (known !== undefined) return known;
  checkZone(zone);
  const stretches = new Map<number, ZoneClock>();
  // Looked up a stretch of some years at a time, and kept: asking for a single offset takes a hundred times as long.
  const stretchOf = (second: number): ZoneClock => {
    const index = Math.floor(second / STRETCH);
    const stretch =
      stretches.get(index) ?? clockFrom({ zone, facts: 'process', transitions: lookUp(zone, index * STRETCH) });
    stretches.set(index, stretch);
    return stretch;
  };
  const clock: ZoneClock = {
    zone,
    facts: 'process',
    offsetAt: (second) => stretchOf(second).offsetAt(second),
    transitionsBetween(from, to) {
      const found: Transition[] = [];
      for (let start = Math.floor((from + 1) / STRETCH) * STRETCH; start <= to; start += STRETCH) {
        found.push(...stretchOf(start).transitionsBetween(Math.max(from, start), to));
        // Where a stretch begins is no change, unless one happens just there.
        if (start > from && stretchOf(start).offsetAt(start) !== stretchOf(start - 1).offsetAt(start - 1))
          found.push({ at: start, offset: stretchOf(start).offsetAt(start) });
      }
      return found.toSorted((a, b) => a.at - b.at);
    },
  };
  ofProcess.set(zone, clock);
  return clock;
}

const ofProcess = new Map<string, ZoneClock>();

/** Eight years, in seconds. */
const STRETCH = 8 * 31_556_952;

/** What the clock reads at a second, and its changes within a stretch of it. */
function lookUp(zone: string, start: number): Transition[] {
  let at: Temporal.ZonedDateTime | null = Temporal.Instant.fromEpochMilliseconds(start * 1_000).toZonedDateTimeISO(
    zone,
  );
  const found: Transition[] = [];
  for (; at !== null && at.epochMilliseconds / 1_000 < start + STRETCH; at = at.getTimeZoneTransition('next')) {
    found.push({ at: at.epochMilliseconds / 1_000, offset: at.offsetNanoseconds / 1e9 });
  }
  return found;
}

/** What carries a zone, and the clock that decides in it: the ledger's where one is given, else this process's. */
export interface InZone {
  readonly zone: string;
  readonly clock?: ZoneClock;
}

/** The clock that decides for a calendar. Throws OnceperError `unknown_zone`. */
export function clockIn({ zone, clock }: InZone): ZoneClock {
  return clock ?? clockOfProcess(checkZone(zone));
}

/** What the clock reads at an instant. */
export function readingAt(instant: Temporal.Instant, clock: ZoneClock): Temporal.PlainDateTime {
  const offset = clock.offsetAt(secondOf(instant));
  return instant.add({ seconds: offset }).toZonedDateTimeISO('UTC').toPlainDateTime();
}

/** The date, `2026-10-01`, that a calendar on the wall of the zone shows at the instant. */
export function localDate(instant: Instant, zone: InZone): string {
  return readingAt(instantOf(instant), clockIn(zone)).toPlainDate().toString();
}

/**
 * Tells of the times of a day, given in seconds after its local midnight, at which seconds of the epoch the clock reads them, in
 * order: none in a gap, two where it is put back. The clock is looked at once for all of them.
 */
export function readerOf(midnight: Temporal.PlainDateTime, clock: ZoneClock): (time: number) => number[] {
  const start = secondsOf(midnight);
  const stretches = stretchesAround(start, clock);
  return (time) => {
    const readings: number[] = [];
    for (const { from, to, offset } of stretches) {
      const second = start + time - offset;
      if (second >= from && second < to) readings.push(second);
    }
    return readings;
  };
}

/** The second of the epoch in which an instant lies. */
export function secondOf(instant: Temporal.Instant): number {
  return Math.floor(instant.epochMilliseconds / 1_000);
}

/**
 * The first second of the epoch from which on the zone's clock never reads before `local`. Where the clock is put forward over
 * `local` that is the jump itself; where it is put back from after `local` to before it (St John's did so at 00:01) it
 * is the second occurrence, so that no local time of a period comes after the period's end. Never decreases as `local`
 * grows, hence periods never overlap and leave nothing between them.
 */
export function boundary(local: Temporal.PlainDateTime, clock: ZoneClock): number {
  const second = secondsOf(local);
  const ends = stretchesAround(second, clock).map(({ from, to, offset }) =>
    // Until here, or to the stretch's own end, the clock reads earlier times; not at all where it starts later.
    second - offset > from ? Math.min(to, second - offset) : Number.NEGATIVE_INFINITY,
  );
  return Math.max(...ends);
}

interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly offset: number;
}

/** No clock is further from UTC than a day, and no change moves one by more; the times of a date span another. */
const REACH = 3 * 86_400;

/** The stretches of constant offset that can read a local time, given as if it were UTC; the outer ones without an end. */
function stretchesAround(second: number, clock: ZoneClock): Stretch[] {
  const changes = clock.transitionsBetween(second - REACH, second + REACH);
  const starts = [{ at: Number.NEGATIVE_INFINITY, offset: clock.offsetAt(second - REACH) }, ...changes];
  return starts.map(({ at, offset }, index) => ({
    from: at,
    to: starts[index + 1]?.at ?? Number.POSITIVE_INFINITY,
    offset,
  }));
}

/** Of a local time of whole seconds, as if it were UTC. */
export function secondsOf(local: Temporal.PlainDateTime): number {
  return local.toZonedDateTime('UTC').epochMilliseconds / 1_000;
}

/** A second of the epoch in the form that crosses our boundaries. */
export function instantText(second: number): Instant {
  return instantAt(second).toString();
}

/** A second of the epoch as an instant. */
export function instantAt(second: number): Temporal.Instant {
  return Temporal.Instant.fromEpochMilliseconds(second * 1_000);
}

/** Where two clocks of a zone first read different times, and by how much each is ahead of UTC there. */
export interface Disagreement {
  readonly at: Instant;
  readonly offsets: readonly [number, number];
}

/** The first second from `from` to `to` at which two clocks differ, or null. Both are compared at every change of either. */
export function firstDisagreement(a: ZoneClock, b: ZoneClock, from: Instant, to: Instant): Disagreement | null {
  const [start, end] = [from, to].map((at) => secondOf(instantOf(at))) as [number, number];
  const changes = [a, b].flatMap((clock) => clock.transitionsBetween(start, end).map(({ at }) => at));
  const at = [start, ...changes.toSorted((one, other) => one - other)].find(
    (second) => a.offsetAt(second) !== b.offsetAt(second),
  );
  if (at === undefined) return null;
  return { at: instantText(at), offsets: [a.offsetAt(at), b.offsetAt(at)] };
}

/** An offset as people write it: `-07:00`, with seconds only where there are some. */
export function offsetText(offset: number): string {
  const seconds = Math.abs(offset);
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const shown = parts[2] === 0 ? parts.slice(0, 2) : parts;
  return (offset < 0 ? '-' : '+') + shown.map((part) => String(part).padStart(2, '0')).join(':');
}
