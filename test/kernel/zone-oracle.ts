import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Zones of every continent and kind of history; for each, zdump and Node agree from 1900 on where their releases do. */
export const ZONES: readonly string[] = [
  ...['Abidjan', 'Cairo', 'Casablanca', 'Johannesburg', 'Lagos', 'Monrovia', 'Nairobi'].map((city) => `Africa/${city}`),
  ...['Anchorage', 'Bogota', 'Caracas', 'Chicago', 'Halifax', 'Havana', 'Los_Angeles', 'Mexico_City', 'New_York'].map(
    (city) => `America/${city}`,
  ),
  ...['Noronha', 'Nuuk', 'Phoenix', 'Santiago', 'Sao_Paulo', 'Scoresbysund', 'St_Johns', 'Toronto'].map(
    (city) => `America/${city}`,
  ),
  ...['Casey', 'Troll'].map((station) => `Antarctica/${station}`),
  ...['Amman', 'Beirut', 'Dhaka', 'Dubai', 'Gaza', 'Hong_Kong', 'Karachi', 'Kathmandu', 'Kolkata', 'Manila'].map(
    (city) => `Asia/${city}`,
  ),
  ...['Pyongyang', 'Seoul', 'Shanghai', 'Singapore', 'Tehran', 'Tokyo', 'Yakutsk'].map((city) => `Asia/${city}`),
  ...['Azores', 'Cape_Verde'].map((islands) => `Atlantic/${islands}`),
  ...['Adelaide', 'Eucla', 'Lord_Howe', 'Sydney'].map((place) => `Australia/${place}`),
  ...['Berlin', 'Dublin', 'Istanbul', 'Lisbon', 'London', 'Moscow', 'Paris'].map((city) => `Europe/${city}`),
  ...['Apia', 'Auckland', 'Chatham', 'Honolulu', 'Kiritimati', 'Kwajalein', 'Norfolk'].map(
    (place) => `Pacific/${place}`,
  ),
  'UTC',
];

/** From second `from` (of the epoch) on, the zone's clock is `offset` seconds ahead of UTC. */
export interface Stretch {
  readonly from: number;
  readonly offset: number;
}

/** Local date and time as seconds since 1970-01-01T00:00:00 on the same clock. */
export function localSeconds(local: string): number {
  return Date.parse(`${local}${local.length > 10 ? '' : 'T00:00:00'}Z`) / 1000;
}

const folder = '/usr/share/zoneinfo';

/** Whether this machine has zdump and, without which it silently answers UTC, the system's own zone files. */
export function hasZdump(): boolean {
  if (!existsSync(path.join(folder, 'Europe/London'))) return false;
  return (process.env['PATH'] ?? '').split(':').some((place) => existsSync(path.join(place, 'zdump')));
}

/** Whether the system's zone files are of the release that Node brings along, as far as that can be told. */
export function isSameRelease(): boolean {
  const file = path.join(folder, 'tzdata.zi');
  return existsSync(file) && readFileSync(file, 'utf8').split('\n', 1)[0] === `# version ${process.versions['tz']}`;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const dumped = /\w{3} (\w{3}) +(\d+) (\d\d:\d\d:\d\d) (\d{4}) UT = .* gmtoff=(-?\d+)/;

/** The history of a zone's clock from 1899 to 2101 as the system's zdump prints it, in order. */
export function stretchesByZdump(zone: string): readonly Stretch[] {
  const output = execFileSync('zdump', ['-v', '-c', '1899,2101', zone], { encoding: 'utf8', maxBuffer: 2 ** 26 });
  const stretches: Stretch[] = [];
  for (const line of output.split('\n')) {
    const [, month = '', day = '', time = '', year = '', gmtoff = ''] = dumped.exec(line) ?? [];
    if (gmtoff === '') continue;
    const date = `${year}-${String(months.indexOf(month) + 1).padStart(2, '0')}-${day.padStart(2, '0')}`;
    const offset = Number(gmtoff);
    const last = stretches.at(-1);
    if (last === undefined) stretches.push({ from: Number.NEGATIVE_INFINITY, offset });
    else if (last.offset !== offset) stretches.push({ from: localSeconds(`${date}T${time}`), offset });
  }
  return stretches.length > 0 ? stretches : [{ from: Number.NEGATIVE_INFINITY, offset: 0 }];
}

/** The first second from which on the clock never reads before `local`: the last stretch that does decides. */
export function boundaryIn(stretches: readonly Stretch[], local: number): number {
  const index = stretches.findLastIndex(({ from, offset }) => from + offset < local);
  const until = stretches[index + 1]?.from ?? Number.POSITIVE_INFINITY;
  return Math.min(until, local - (stretches[index]?.offset ?? 0));
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  const numeric = 'numeric';
  const fields = {
    year: numeric,
    month: numeric,
    day: numeric,
    hour: numeric,
    minute: numeric,
    second: numeric,
  } as const;
  const format = new Intl.DateTimeFormat('en-US', { ...fields, timeZone: zone, hourCycle: 'h23' });
  formats.set(zone, format);
  return format;
}

/** What the zone's clock reads at a second of the epoch, in local seconds, by Node's own Intl. */
export function clockByIntl(zone: string, second: number): number {
  const parts = formatOf(zone).formatToParts(second * 1000);
  const read = (type: Intl.DateTimeFormatPartTypes): number => Number(parts.find((part) => part.type === type)?.value);
  return Date.UTC(read('year'), read('month') - 1, read('day'), read('hour'), read('minute'), read('second')) / 1000;
}

/** No zone has two changes in 28 days and no change of the offset over all: the shortest Ramadan pause was 30. */
const step = 28 * 86_400;

/** The changes of the zone's clock between two years, found by bisection over what Intl reads. */
export function changesByIntl(zone: string, fromYear: number, toYear: number): readonly number[] {
  const offset = (second: number): number => clockByIntl(zone, second) - second;
  const changes: number[] = [];
  let start = Date.UTC(fromYear, 0) / 1000;
  let before = offset(start);
  for (; start < Date.UTC(toYear, 0) / 1000; start += step) {
    const after = offset(start + step);
    if (after !== before) changes.push(bisect(start, start + step, (second) => offset(second) === before));
    before = after;
  }
  return changes;
}

/** The first second after `low` at which `isBefore` no longer holds, known to be so at `high`. */
function bisect(low: number, high: number, isBefore: (second: number) => boolean): number {
  if (high - low <= 1) return high;
  const middle = Math.floor((low + high) / 2);
  return isBefore(middle) ? bisect(middle, high, isBefore) : bisect(low, middle, isBefore);
}

const minute = 60;
const lookouts = [0, 1, 29, 30, 31, 59, 60, 61, 90, 119, 120, 180, 360, 720, 1439, 1440, 1500].map((n) => n * minute);

/** Whether, by Intl, the clock reads before `local` just before the second and never again from it on (for 25 hours). */
export function isBoundaryByIntl(zone: string, second: number, local: number): boolean {
  const isAfter = (at: number): boolean => clockByIntl(zone, at) >= local;
  return !isAfter(second - 1) && lookouts.every((later) => isAfter(second + later));
}
