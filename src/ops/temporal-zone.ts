import { randomUUID } from 'node:crypto';
import type { CalendarSpec, Client } from '@temporalio/client';
import { Temporal } from 'temporal-polyfill';
import { instantOf } from '../kernel/instant.ts';
import type { Instant } from '../kernel/sql.ts';
import { clockFrom, instantAt, secondOf, type Transition, type ZoneClock } from '../kernel/zone-clock.ts';
import { pointCalendar } from './schedule-times.ts';

/** The stretch that is asked about, and clocks that may know its changes to the second. */
interface Asked {
  readonly from: Instant;
  readonly to: Instant;
  readonly candidates: readonly ZoneClock[];
}

/**
 * A zone's clock as Temporal's server has it, from one instant to another. Nothing tells a server's table of zones, but it says
 * when a schedule would fire: noon of every day tells the offset of the day, and what the clock would read around a change that
 * somebody knows tells whether the server has that change too. One that nobody knows is placed at the next noon.
 */
export async function clockOfTemporal(client: Client, zone: string, asked: Asked): Promise<ZoneClock> {
  const noons = await firingsIn(client, zone, [{ hour: 12, minute: 0, second: 0 }], asked);
  const [known = null] = asked.candidates;
  const offsets = noons.map((second) => ({ second, offset: offsetAtNoon(second, known) }));
  const changed = offsets.flatMap(({ second, offset }, index) => {
    const before = offsets[index - 1];
    return before === undefined || before.offset === offset
      ? []
      : [{ after: before.second, before: before.offset, second, offset }];
  });
  const guesses = changed.flatMap((change) => guessesOf(change, asked.candidates));
  const points = guesses.flatMap(({ last, first, before, offset }) => [reading(last, before), reading(first, offset)]);
  const hits = new Set(points.length === 0 ? [] : await firingsIn(client, zone, points, asked));
  const transitions = changed.map(({ after, second, offset }): Transition => {
    const known = guesses.find(
      ({ at, last, first }) => at > after && at <= second && hits.has(last) && hits.has(first),
    );
    return { at: known?.at ?? second, offset };
  });
  const start = { at: secondOf(instantOf(asked.from)), offset: offsets[0]?.offset ?? 0 };
  return clockFrom({ zone, facts: 'Temporal', transitions: [start, ...transitions.filter(({ at }) => at > start.at)] });
}

interface Change {
  readonly after: number;
  readonly before: number;
  readonly second: number;
  readonly offset: number;
}

/**
 * The changes that somebody knows between two noons, with the last second before and the first one after which no time is read
 * twice: of those that are, the server fires at one reading or both. A clock put back is so known to within the repeated hour.
 */
function guessesOf({ after, before, second, offset }: Change, candidates: readonly ZoneClock[]) {
  const known = candidates.flatMap((clock) => clock.transitionsBetween(after, second).map(({ at }) => at));
  const repeated = Math.max(0, before - offset);
  return [...new Set(known)].map((at) => ({ at, before, offset, last: at - repeated - 1, first: at + repeated }));
}

/** The local time that a clock reads at a second by an offset, as a calendar of that one second. */
function reading(second: number, offset: number): CalendarSpec {
  return pointCalendar(
    instantAt(second + offset)
      .toZonedDateTimeISO('UTC')
      .toPlainDateTime(),
  );
}

const DAY = 86_400;

/** By how much the clock is ahead where it reads noon: of the offsets a day apart the one nearest to what is known. */
function offsetAtNoon(second: number, known: ZoneClock | null): number {
  const offset = ((((DAY / 2 - second) % DAY) + DAY) % DAY) - DAY;
  const near = known?.offsetAt(second) ?? 0;
  return [offset, offset + DAY].toSorted((a, b) => Math.abs(a - near) - Math.abs(b - near))[0] ?? offset;
}

/** The server answers a thousand times at most at once. */
const DAYS_AT_ONCE = 450;

/** When a schedule with these calendars in the zone would fire, in seconds of the epoch: asked of one that is paused, and deleted again. */
async function firingsIn(
  client: Client,
  zone: string,
  calendars: readonly CalendarSpec[],
  { from, to }: Asked,
): Promise<number[]> {
  const scheduleId = `onceper-zone-${randomUUID()}`;
  const handle = await client.schedule.create({
    scheduleId,
    spec: { timezone: zone, calendars: [...calendars] },
    action: { type: 'startWorkflow', workflowType: 'never', taskQueue: scheduleId, args: [] },
    state: { paused: true, note: `asks how the server reads ${zone}; deleted at once` },
  });
  try {
    const found: number[] = [];
    const end = instantOf(to);
    for (
      let start = instantOf(from);
      Temporal.Instant.compare(start, end) < 0;
      start = start.add({ hours: 24 * DAYS_AT_ONCE })
    ) {
      const stop = start.add({ hours: 24 * DAYS_AT_ONCE });
      found.push(...(await matching(client, scheduleId, start, Temporal.Instant.compare(stop, end) < 0 ? stop : end)));
    }
    return [...new Set(found)].toSorted((a, b) => a - b);
  } finally {
    await handle.delete();
  }
}

async function matching(
  client: Client,
  scheduleId: string,
  from: Temporal.Instant,
  to: Temporal.Instant,
): Promise<number[]> {
  const { startTime } = await client.workflowService.listScheduleMatchingTimes({
    namespace: client.options.namespace,
    scheduleId,
    startTime: timestamp(from),
    endTime: timestamp(to),
  });
  return (startTime ?? []).map(({ seconds }) => Number(seconds ?? 0));
}

type Timestamp = NonNullable<Parameters<Client['workflowService']['listScheduleMatchingTimes']>[0]['startTime']>;

/** An int64 that is sent may be a number; its type knows Long alone, which only the SDK's own packages bring along. */
function timestamp(instant: Temporal.Instant): Timestamp {
  return { seconds: secondOf(instant) as unknown as NonNullable<Timestamp['seconds']>, nanos: 0 };
}
