import { afterAll, beforeAll, expect, test } from 'vitest';
import { createKilling, type Killing, type Outcome } from './killing.ts';

let killing: Killing;
beforeAll(async () => {
  killing = await createKilling();
}, 60_000);
afterAll(() => killing.end());

test('a process killed at a commit of open, claim, slice or close leaves one effect a number, and true attempts', async () => {
  const commits = (await killing.points()).filter(({ text }) => text === 'commit');
  // Before a later commit nothing else is stored than after the one before it; test/long/kills.test.ts has every statement.
  const points = commits.filter(({ path, moment }) => moment === 'after' || (path === 'open' && moment === 'before'));
  expect(new Set(points.map(({ path }) => path))).toEqual(new Set(['open', 'claim', 'slice 0', 'slice 1', 'close']));
  const outcomes: Outcome[] = await Promise.all(points.map((point) => killing.kill(point)));
  expect(new Set(outcomes.map(({ attempts }) => attempts))).toEqual(
    new Set([
      'done, 2 finished',
      'lease_expired, 0 finished · done, 2 finished',
      'lease_expired, 1 finished · done, 1 finished',
      'lease_expired, 2 finished · done, 0 finished',
    ]),
  );
}, 60_000);
