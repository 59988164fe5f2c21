import { afterAll, beforeAll, expect, test } from 'vitest';
import { localDate } from '../../src/kernel/zone-clock.ts';
import { expectedPeriods } from '../../src/ops/periods.ts';
import { cancelAction, skipAction } from '../../src/store/stop.ts';
import { createStory, type Story } from './story.ts';

let story: Story;
beforeAll(async () => {
  story = await createStory({
    hooks: {
      inspect: (_, { period }) =>
        Promise.resolve(
          period === '2026-08' ? { kind: 'held', code: 'empty', reason: 'nothing there' } : { kind: 'ready' },
        ),
    },
  });
});
afterAll(() => story.drop());

const listed = async (range: { from?: string; to?: string } = {}) => {
  const { periods } = await expectedPeriods(story.db, story.services.registry, { job: 'tiny', ...range });
  return periods;
};

test('every period from the first to the last that has ended is missing while nothing ever asked for it', async () => {
  const periods = await listed();
  expect(periods[0]).toEqual({
    period: '2026-01',
    state: 'missing',
    reason: 'its schedule instant 2026-01-31T18:00:00Z has passed and no run was opened',
  });
  const now = new Date(Date.now() + 8 * 3_600_000);
  const months = (now.getUTCFullYear() - 2026) * 12 + now.getUTCMonth();
  expect(periods.length).toBeGreaterThanOrEqual(months - 1);
  expect(periods.length).toBeLessThanOrEqual(months + 1);
});

test('each period shows what became of it, whatever it is', async () => {
  await story.settle('2026-01');
  await story.open('2026-02');
  await story.claim((await story.open('2026-03')).run);
  await story.fail(await story.claim((await story.open('2026-04')).run), 'connection_lost');
  await story.open('2026-05');
  await story.endLease('tiny:2026-05', 60_000);
  await story.claim((await story.open('2026-06')).run);
  await story.endLease('tiny:2026-06', 60_000);
  await story.open('2026-07');
  await cancelAction(story.db, { key: 'tiny:2026-07', actor: 'os:ann', reason: 'wrong rule', lockTimeout: 5_000 });
  await story.open('2026-08');
  const states = (await listed({ to: '2026-08' })).map(({ period, state }) => `${period} ${state}`);
  expect(states).toEqual([
    '2026-01 done',
    '2026-02 admitted',
    '2026-03 running',
    '2026-04 exhausted',
    '2026-05 stalled',
    '2026-06 stalled',
    '2026-07 cancelled',
    '2026-08 held',
  ]);
});

test('a held period says why, and a stalled one since when', async () => {
  const [stalled, , held] = await listed({ from: '2026-06', to: '2026-08' });
  expect(stalled?.reason).toMatch(/^running, but its lease ended at 20\d\d-/);
  expect(held?.reason).toBe('empty: nothing there');
});

test('a range that runs backwards, or names no period, is refused', async () => {
  await expect(listed({ from: '2026-03', to: '2026-02' })).rejects.toMatchObject({ code: 'malformed_range' });
  await expect(listed({ from: '2026-3' })).rejects.toMatchObject({ code: 'malformed_period' });
});

test('a deferred period says which one it waits for', async () => {
  const waiting = await createStory({ hooks: { needs: 'previous' } });
  await waiting.open('2026-04');
  const { periods } = await expectedPeriods(waiting.db, waiting.services.registry, {
    job: 'tiny',
    from: '2026-04',
    to: '2026-04',
  });
  expect(periods).toEqual([
    { period: '2026-04', state: 'deferred', reason: 'predecessor_not_done: 2026-03 must be done first' },
  ]);
  await waiting.drop();
});

test('a period that has ended before its schedule instant is not yet due', async () => {
  // Days in a zone where it is about noon now, closed in the last minute of the day after.
  const hour = new Date().getUTCHours();
  const zone = hour === 12 ? 'UTC' : `Etc/GMT${hour > 12 ? '+' : '-'}${Math.abs(hour - 12)}`;
  const first = localDate(new Date(Date.now() - 3 * 86_400_000).toISOString(), { zone });
  const daily = await createStory({ rule: { zone, first, period: 'day', calendar: { hour: 23, minute: 59 } } });
  const { periods } = await expectedPeriods(daily.db, daily.services.registry, { job: 'tiny' });
  expect(periods.map(({ state }) => state)).toEqual(['missing', 'missing', 'not_yet_due']);
  expect(periods[2]?.reason).toMatch(/^its schedule instant 20.*Z is still to come$/);
  await daily.drop();
});

test('a period that no firing closes is due when it ends', async () => {
  const sparse = await createStory({ rule: { calendar: { dayOfMonth: 31, hour: 2, minute: 0 } } });
  const asked = { job: 'tiny', from: '2026-02', to: '2026-03' };
  const { periods } = await expectedPeriods(sparse.db, sparse.services.registry, asked);
  expect(periods).toEqual([
    { period: '2026-02', state: 'missing', reason: expect.stringContaining('2026-03-30T18:00:00Z has passed') },
    {
      period: '2026-03',
      state: 'missing',
      reason: 'no firing closes it; it ended 2026-03-31T16:00:00Z and no run was opened',
    },
  ]);
  await sparse.drop();
});

test('a skipped period keeps the reason that was given', async () => {
  const skipping = await createStory();
  const about = { job: 'tiny', period: '2026-02', actor: 'tester', ruleVersion: 1, release: 'test' };
  const skip = { ...about, key: 'tiny:2026-02', reason: 'the shops were closed' };
  await skipAction(skipping.db, skip, () => Promise.resolve());
  const asked = { job: 'tiny', from: '2026-02', to: '2026-02' };
  const { periods } = await expectedPeriods(skipping.db, skipping.services.registry, asked);
  expect(periods).toEqual([{ period: '2026-02', state: 'skipped', reason: 'the shops were closed' }]);
  await skipping.drop();
});
