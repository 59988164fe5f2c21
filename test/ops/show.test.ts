import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listEffects } from '../../src/ops/effects.ts';
import { readKey, shownKey } from '../../src/ops/show.ts';
import { skipAction } from '../../src/store/stop.ts';
import { createStory, type Story } from './story.ts';

let story: Story;
beforeAll(async () => {
  story = await createStory();
});
afterAll(() => story.drop());

const shown = async (key: string) => shownKey(await readKey(story.db, key));

describe('show', () => {
  test('tells a settled key with its run, its attempt, its document and its effects by state', async () => {
    const { run } = await story.settle('2026-01');
    const key = await shown('tiny:2026-01');
    expect(key).toMatchObject({
      key: 'tiny:2026-01',
      state: 'done',
      stalled: false,
      fence: '1',
      owner: run,
      ruleVersion: 1,
      release: 'test',
      document: { id: 'doc-tiny:2026-01', totals: {} },
      slices: { total: 2, done: 2 },
      delivering: true,
      effects: { pending: 2 },
    });
    expect(key.runs).toMatchObject([
      { run, scheduledAt: '2026-01-31T18:00:00Z', trigger: 'schedule', actor: 'schedule:tiny', decision: 'admitted' },
    ]);
    expect(key.attempts).toMatchObject([{ run, number: 1, fence: '1', outcome: 'done', release: 'test' }]);
    expect(key.attempts[0]?.startedAt).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
  });

  test('tells a key whose lease ended a month ago', async () => {
    await story.claim((await story.open('2026-04')).run);
    await story.endLease('tiny:2026-04', 31 * 86_400_000);
    expect(await shown('tiny:2026-04')).toMatchObject({ state: 'running', stalled: true });
  });

  test('tells a second run of the same time as a repeat, and leaves owner and document as they were', async () => {
    const before = await shown('tiny:2026-01');
    await story.open('2026-01');
    const after = await shown('tiny:2026-01');
    expect(after.runs[1]).toMatchObject({ decision: 'duplicate', repeatOf: before.owner });
    expect(after).toMatchObject({ owner: before.owner, document: before.document, fence: before.fence });
  });

  test('tells a skipped period, which has an action and no run', async () => {
    const about = { job: 'tiny', period: '2026-02', actor: 'tester', ruleVersion: 1, release: 'test' };
    await skipAction(story.db, { ...about, key: 'tiny:2026-02', reason: 'closed shops' }, () => Promise.resolve());
    expect(await shown('tiny:2026-02')).toMatchObject({ state: 'skipped', skippedReason: 'closed shops', runs: [] });
  });

  test('tells a lease that ended while the key was running as stalled', async () => {
    await story.claim((await story.open('2026-03')).run);
    expect(await shown('tiny:2026-03')).toMatchObject({ state: 'running', stalled: false });
    await story.endLease('tiny:2026-03', 1_000);
    expect(await shown('tiny:2026-03')).toMatchObject({ state: 'running', stalled: true });
  });
});

describe('effects', () => {
  test('are listed by number, a page at a time, until there is no next', async () => {
    const first = await listEffects(story.db, { key: 'tiny:2026-01', after: null, limit: 1 });
    expect(first).toEqual({
      key: 'tiny:2026-01',
      effects: [
        {
          number: 'tiny:2026-01:s-0001:GBP:payout',
          subject: 's-0001',
          currency: 'GBP',
          amount: '100',
          state: 'pending',
          attempts: 0,
          counterpartyId: null,
        },
      ],
      next: 'tiny:2026-01:s-0001:GBP:payout',
      pause: null,
    });
    const second = await listEffects(story.db, { key: 'tiny:2026-01', after: first.next, limit: 1 });
    expect(second.effects.map(({ number }) => number)).toEqual(['tiny:2026-01:s-0002:GBP:payout']);
    expect(second.next).toBeNull();
  });

  test('of an unknown key are refused', async () => {
    await expect(listEffects(story.db, { key: 'tiny:2026-09', after: null, limit: 1 })).rejects.toMatchObject({
      code: 'unknown_key',
    });
  });
});
