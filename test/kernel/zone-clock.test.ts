import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { describe, expect, it } from 'vitest';
import {
  boundary,
  clockContinued,
  clockFrom,
  clockOfProcess,
  firstDisagreement,
  holdsFrom,
  localDate,
  offsetText,
  readerOf,
  type Transition,
  type ZoneClock,
} from '../../src/kernel/zone-clock.ts';

const HOUR = 3_600;

/** A clock of planted changes: the instant of each and the hours by which it is ahead of UTC from then on. */
function planted(...changes: readonly (readonly [at: string, hours: number])[]): ZoneClock {
  const transitions = changes.map(([at, hours]) => ({ at: second(at), offset: hours * HOUR }));
  return clockFrom({ zone: 'Planted/Zone', facts: 'planted', transitions });
}

function second(instant: string): number {
  return Date.parse(instant) / 1_000;
}

/** The changes of a list as people write them. */
function shown(transitions: readonly Transition[]): readonly (readonly [string, number])[] {
  return transitions.map(({ at, offset }) => [new Date(at * 1_000).toISOString().replace('.000', ''), offset / HOUR]);
}

const local = (text: string) => Temporal.PlainDateTime.from(text);
const instant = (at: number) => new Date(at * 1_000).toISOString().replace('.000', '');

const start = ['2026-01-01T00:00:00Z', 1] as const;
/** Put forward over 02:00 to 03:00 on one day, and put back over the same hour on another. */
const gapAndRepeat = planted(start, ['2026-03-29T01:00:00Z', 2], ['2026-10-25T01:00:00Z', 1]);

describe('a clock by a list of its changes', () => {
  it('reads what each change says from its second on, and before the first one what that says', () => {
    const read = (at: string) => gapAndRepeat.offsetAt(second(at)) / HOUR;
    expect(['1900-01-01T00:00:00Z', '2026-03-29T00:59:59Z'].map(read)).toEqual([1, 1]);
    expect(['2026-03-29T01:00:00Z', '2026-10-25T00:59:59Z'].map(read)).toEqual([2, 2]);
    expect(['2026-10-25T01:00:00Z', '2999-01-01T00:00:00Z'].map(read)).toEqual([1, 1]);
    expect(clockFrom({ zone: 'UTC', facts: 'none', transitions: [] }).offsetAt(0)).toBe(0);
  });

  it('gives the changes after a second and up to another', () => {
    const [spring, autumn] = [second('2026-03-29T01:00:00Z'), second('2026-10-25T01:00:00Z')];
    const at = (from: number, to: number) => gapAndRepeat.transitionsBetween(from, to).map((change) => change.at);
    expect(at(spring, autumn)).toEqual([autumn]);
    expect(at(spring - 1, autumn - 1)).toEqual([spring]);
    expect(at(spring, autumn - 1)).toEqual([]);
  });

  it('shows the date on its own wall', () => {
    const clock = { zone: 'Planted/Zone', clock: gapAndRepeat };
    expect(localDate('2026-06-30T21:59:59Z', clock)).toBe('2026-06-30');
    expect(localDate('2026-06-30T22:00:00Z', clock)).toBe('2026-07-01');
    expect(localDate('2026-11-30T22:59:59Z', clock)).toBe('2026-11-30');
  });
});

describe('a clock that goes by an old table until an instant and by a young one from it on', () => {
  const old = planted(start, ['2026-03-29T01:00:00Z', 2], ['2026-10-25T01:00:00Z', 1], ['2027-03-28T01:00:00Z', 2]);

  it('keeps the old changes before it, jumps at it, and has the young changes after it', () => {
    const young = planted(start, ['2026-05-01T00:00:00Z', 3], ['2027-01-01T00:00:00Z', 4]);
    expect(shown(clockContinued(old, young, '2026-12-01T00:00:00Z'))).toEqual([
      start,
      ['2026-03-29T01:00:00Z', 2],
      ['2026-10-25T01:00:00Z', 1],
      ['2026-12-01T00:00:00Z', 3],
      ['2027-01-01T00:00:00Z', 4],
    ]);
  });

  it('has no change at it where both read the same there', () => {
    const young = planted(start, ['2026-11-30T00:00:00Z', 1], ['2027-02-01T00:00:00Z', 0]);
    expect(shown(clockContinued(old, young, '2026-12-01T00:00:00Z')).slice(-2)).toEqual([
      ['2026-10-25T01:00:00Z', 1],
      ['2027-02-01T00:00:00Z', 0],
    ]);
  });

  it('has a change of either that falls on it as the young one says', () => {
    const at = '2026-10-25T01:00:00Z';
    const [none, other] = [planted(start, ['2026-03-29T01:00:00Z', 2]), planted(start, [at, 5])];
    expect(shown(clockContinued(old, none, at))).toEqual([start, ['2026-03-29T01:00:00Z', 2]]);
    expect(shown(clockContinued(old, other, at)).at(-1)).toEqual([at, 5]);
    expect(shown(clockContinued(none, old, at)).at(1)).toEqual(['2026-03-29T01:00:00Z', 2]);
    expect(shown(clockContinued(none, old, at)).filter(([change]) => change === at)).toEqual([[at, 1]]);
  });

  it('reads before it as the old one and from it on as the young one, also when it is continued again', () => {
    const changes = fc
      .array(fc.record({ at: fc.integer({ min: 1, max: 200 }), offset: fc.integer({ min: -12, max: 14 }) }))
      .map((list) => [...new Map([{ at: 0, offset: 0 }, ...list].map((change) => [change.at, change])).values()])
      .map((list) => list.toSorted((a, b) => a.at - b.at));
    const clock = changes.map((transitions) => clockFrom({ zone: 'UTC', facts: 'random', transitions }));
    const instants = fc.tuple(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 101, max: 200 }));
    fc.assert(
      fc.property(fc.tuple(clock, clock, clock), instants, ([first, then, last], [early, late]) => {
        const once = continued(first, then, early);
        const twice = continued(once, last, late);
        for (let at = 0; at < 210; at += 1) {
          const expected = at < early ? first : at < late ? then : last;
          expect([at, twice.offsetAt(at)]).toEqual([at, expected.offsetAt(at)]);
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe('a young table', () => {
  const decided = '2026-12-31T23:00:00Z';
  const bound = local('2027-01-01T00:00:00');

  it.each([
    ['ahead', 3, decided],
    ['of the same reading', 1, decided],
    ['behind', -4, '2027-01-01T04:00:00Z'],
    ['behind by half an hour', 0.5, '2026-12-31T23:30:00Z'],
  ])(
    '%s holds from where the old one decided, or once it has come to it, and the bound there stays',
    (_how, hours, from) => {
      const young = planted(['2020-01-01T00:00:00Z', hours]);
      expect(holdsFrom(gapAndRepeat, young, decided)).toBe(from);
      expect(instant(boundary(bound, gapAndRepeat))).toBe(decided);
      expect(instant(boundary(bound, continued(gapAndRepeat, young, second(from))))).toBe(decided);
    },
  );

  it('that is put back over that time itself holds from its last reading of it', () => {
    const young = planted(start, ['2026-12-31T23:30:00Z', 0]);
    expect(holdsFrom(gapAndRepeat, young, decided)).toBe('2027-01-01T00:00:00Z');
  });
});

function continued(old: ZoneClock, young: ZoneClock, from: number): ZoneClock {
  return clockFrom({ zone: 'UTC', facts: 'continued', transitions: clockContinued(old, young, instant(from)) });
}

describe('two clocks', () => {
  const from = '2026-01-01T00:00:00Z';
  const to = '2026-12-31T00:00:00Z';

  it('differ first at the first second that they read otherwise, whoever of them changed', () => {
    const stays = planted(start, ['2026-03-29T01:00:00Z', 2]);
    const found = { at: '2026-10-25T01:00:00Z', offsets: [1 * HOUR, 2 * HOUR] };
    expect(firstDisagreement(gapAndRepeat, stays, from, to)).toEqual(found);
    expect(firstDisagreement(stays, gapAndRepeat, from, to)).toEqual({ ...found, offsets: found.offsets.toReversed() });
  });

  it('that differ from before are told at the second from which they are compared', () => {
    const other = planted(['2020-01-01T00:00:00Z', 0]);
    expect(firstDisagreement(gapAndRepeat, other, from, to)).toEqual({ at: from, offsets: [HOUR, 0] });
  });

  it('agree where one lists a change that changes nothing, or differs only outside of the time that is asked about', () => {
    const wordy = planted(start, ['2026-02-01T00:00:00Z', 1], ['2026-03-29T01:00:00Z', 2], ['2026-10-25T01:00:00Z', 1]);
    expect(firstDisagreement(gapAndRepeat, wordy, from, to)).toBeNull();
    const later = planted(start, ['2026-03-29T01:00:00Z', 2]);
    expect(firstDisagreement(gapAndRepeat, later, from, '2026-10-25T00:59:59Z')).toBeNull();
    expect(firstDisagreement(gapAndRepeat, later, from, '2026-10-25T01:00:00Z')).not.toBeNull();
  });
});

describe('an offset', () => {
  it.each([
    [0, '+00:00'],
    [-25_200, '-07:00'],
    [20_700, '+05:45'],
    [50_400, '+14:00'],
    [-12_600, '-03:30'],
    [-968, '-00:16:08'],
    [-1, '-00:00:01'],
  ])('of %i seconds is written %s', (offset, text) => {
    expect(offsetText(offset)).toBe(text);
  });
});

/** Put back twice in a day, so that half an hour is read three times; and put forward twice, over two hours. */
const twice = planted(
  start,
  ['2026-05-10T00:30:00Z', 0.5],
  ['2026-05-10T01:00:00Z', 0],
  ['2026-06-10T00:00:00Z', 1],
  ['2026-06-10T02:00:00Z', 2],
);

describe('the boundary of a local time', () => {
  it.each([
    ['read once is its reading', gapAndRepeat, '2026-07-01T00:00:00', '2026-06-30T22:00:00Z'],
    ['in a gap is the jump', gapAndRepeat, '2026-03-29T02:30:00', '2026-03-29T01:00:00Z'],
    ['where a gap begins is the jump', gapAndRepeat, '2026-03-29T02:00:00', '2026-03-29T01:00:00Z'],
    ['where a gap ends is the jump', gapAndRepeat, '2026-03-29T03:00:00', '2026-03-29T01:00:00Z'],
    ['read twice is the second reading', gapAndRepeat, '2026-10-25T02:30:00', '2026-10-25T01:30:00Z'],
    ['where a repeat begins is the first reading', gapAndRepeat, '2026-10-25T02:00:00', '2026-10-25T00:00:00Z'],
    ['where a repeat ends is its reading', gapAndRepeat, '2026-10-25T03:00:00', '2026-10-25T02:00:00Z'],
    ['read three times is the last reading', twice, '2026-05-10T01:15:00', '2026-05-10T01:15:00Z'],
    ['in the second of two gaps is that jump', twice, '2026-06-10T03:30:00', '2026-06-10T02:00:00Z'],
  ])('%s', (_case, clock, at, expected) => {
    expect(instant(boundary(local(at), clock))).toBe(expected);
  });

  it('never decreases, and from it on the clock never reads before the time', () => {
    for (const clock of [gapAndRepeat, twice]) {
      for (const day of ['2026-03-29', '2026-10-25', '2026-05-10', '2026-06-10']) {
        const times = Array.from({ length: 24 * 4 }, (_, n) => local(`${day}T00`).add({ minutes: 15 * n }));
        const boundaries = times.map((time) => boundary(time, clock));
        expect(boundaries).toEqual(boundaries.toSorted((a, b) => a - b));
        for (const [n, at] of boundaries.entries()) {
          const wall = second(`${times[n]?.toString() ?? ''}Z`);
          expect(at - 1 + clock.offsetAt(at - 1)).toBeLessThan(wall);
          for (let later = 0; later < 6 * HOUR; later += 900) {
            expect(at + later + clock.offsetAt(at + later)).toBeGreaterThanOrEqual(wall);
          }
        }
      }
    }
  });
});

describe('the readings of a time of a day', () => {
  const readings = (clock: ZoneClock, day: string, hours: number) =>
    readerOf(local(`${day}T00`), clock)(hours * HOUR).map(instant);

  it('are one on a day without a change, also of the time that the next day begins with', () => {
    expect(readings(gapAndRepeat, '2026-07-01', 9)).toEqual(['2026-07-01T07:00:00Z']);
    expect(readings(gapAndRepeat, '2026-07-01', 24)).toEqual(['2026-07-01T22:00:00Z']);
  });

  it('are none in a gap, whose end is read at the jump', () => {
    expect(readings(gapAndRepeat, '2026-03-29', 2)).toEqual([]);
    expect(readings(gapAndRepeat, '2026-03-29', 2.999)).toEqual([]);
    expect(readings(gapAndRepeat, '2026-03-29', 3)).toEqual(['2026-03-29T01:00:00Z']);
  });

  it('are two where the clock is put back, and one where that ends', () => {
    expect(readings(gapAndRepeat, '2026-10-25', 2)).toEqual(['2026-10-25T00:00:00Z', '2026-10-25T01:00:00Z']);
    expect(readings(gapAndRepeat, '2026-10-25', 3)).toEqual(['2026-10-25T02:00:00Z']);
  });

  it('are three where it is put back twice over one time, and none in either of two gaps', () => {
    expect(readings(twice, '2026-05-10', 1.25)).toEqual([
      '2026-05-10T00:15:00Z',
      '2026-05-10T00:45:00Z',
      '2026-05-10T01:15:00Z',
    ]);
    expect(readings(twice, '2026-06-10', 0.5)).toEqual([]);
    expect(readings(twice, '2026-06-10', 2)).toEqual(['2026-06-10T01:00:00Z']);
    expect(readings(twice, '2026-06-10', 3.5)).toEqual([]);
  });
});

describe('the clock of this process', () => {
  it.each(['Europe/London', 'Africa/Casablanca', 'Pacific/Apia', 'Australia/Lord_Howe', 'UTC'])(
    'of %s has the same changes asked for at once and by the week',
    (zone) => {
      const clock = clockOfProcess(zone);
      const [from, to] = [second('2008-01-01T00:00:00Z'), second('2029-01-01T00:00:00Z')];
      const weeks = Array.from({ length: Math.ceil((to - from) / (7 * 86_400)) }, (_, n) => from + n * 7 * 86_400);
      const byTheWeek = weeks.flatMap((week) => clock.transitionsBetween(week, Math.min(week + 7 * 86_400, to)));
      const atOnce = clock.transitionsBetween(from, to);
      expect(byTheWeek).toEqual(atOnce);
      for (const { at, offset } of atOnce)
        expect([clock.offsetAt(at - 1) === offset, clock.offsetAt(at)]).toEqual([false, offset]);
    },
  );
});
