import { expect, it } from 'vitest';
import { checkZone } from '../../src/kernel/zone.ts';

it.each(['UTC', 'Asia/Shanghai', 'Europe/London', 'America/Argentina/ComodRivadavia', 'America/Port-au-Prince'])(
  'knows %s',
  (zone) => {
    expect(checkZone(zone)).toBe(zone);
  },
);

it('knows every zone that this process has data of', () => {
  const zones = Intl.supportedValuesOf('timeZone');
  expect(zones.length).toBeGreaterThan(400);
  expect(zones.map(checkZone)).toEqual(zones);
});

it.each(['', ' ', 'Asia/Peking', '+08:00', '-05', 'Z', 'local', 'Asia/Shanghai ', '../etc/localtime'])(
  'refuses %j, saying what a zone looks like',
  (zone) => {
    const refused = { code: 'unknown_zone', at: zone, remedy: expect.stringContaining('Asia/Shanghai') };
    expect(() => checkZone(zone)).toThrow(expect.objectContaining(refused));
  },
);

it.each([
  ['asia/shanghai', 'Asia/Shanghai'],
  ['EUROPE/LONDON', 'Europe/London'],
  ['utc', 'UTC'],
])('refuses %s, which a server may not know, and names %s', (zone, spelling) => {
  const refused = expect.objectContaining({ code: 'unknown_zone', remedy: expect.stringContaining(`'${spelling}'`) });
  expect(() => checkZone(zone)).toThrow(refused);
  expect(() => checkZone(zone)).toThrow(refused);
});
