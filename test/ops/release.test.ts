import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { releaseRun } from '../../src/ops/release.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { runByStartId } from '../../src/store/runs.ts';
import { createStory, type Story } from './story.ts';

let story: Story;
beforeAll(async () => {
  story = await createStory({
    hooks: {
      inspect: (_, { period }) =>
        Promise.resolve(period < '2026-03' ? { kind: 'held', code: 'empty', reason: 'nothing' } : { kind: 'ready' }),
    },
  });
});
afterAll(() => story.drop());

const by = { actor: 'os:ann', reason: 'checked with the bank' };

describe('the release of a held run', () => {
  test('is signed, and open then admits the very same run', async () => {
    const { run, decision } = await story.open('2026-01');
    expect(decision).toBe('held');
    const released = await releaseRun(story.db, { run, ...by });
    expect(released).toMatchObject({ id: run, key: 'tiny:2026-01', kind: 'held', scheduledAt: '2026-01-31T18:00:00Z' });
    expect(await story.open('2026-01', { startId: run })).toMatchObject({ run, decision: 'admitted', owner: run });
    expect(await runByStartId(story.db, run)).toMatchObject({ releasedBy: 'os:ann', releaseReason: by.reason });
  });

  test('is signed once: of two at once the first signature stays, and both may tell the tick', async () => {
    const { run } = await story.open('2026-02');
    const asked = ['os:ann', 'os:bob'].map((actor) => releaseRun(story.db, { run, actor, reason: actor }));
    expect((await Promise.all(asked)).map(({ kind }) => kind)).toEqual(['held', 'held']);
    const signed = await runByStartId(story.db, run);
    expect(['os:ann', 'os:bob']).toContain(signed?.releasedBy);
    await releaseRun(story.db, { run, ...by });
    expect(await runByStartId(story.db, run)).toEqual(signed);
  });
});

describe('the release of the owner of an exhausted key', () => {
  test('admits the key again for it, with a budget of its own; finished slices stay', async () => {
    const { run } = await story.open('2026-03');
    const grant = await story.claim(run);
    await story.perform(grant, 0);
    await story.fail(grant, 'connection_lost');
    await story.fail(await story.claim(run, 2), 'connection_lost');
    expect(await actionByKey(story.db, 'tiny:2026-03')).toMatchObject({ state: 'exhausted', fence: 2n });
    expect(await releaseRun(story.db, { run, ...by })).toMatchObject({ kind: 'readmitted', key: 'tiny:2026-03' });
    expect(await actionByKey(story.db, 'tiny:2026-03')).toMatchObject({
      state: 'admitted',
      ownerRun: run,
      budgetFrom: 2n,
    });
    const again = await story.claim(run, 3);
    expect(again).toMatchObject({ fence: '3', slices: [1] });
  });

  test('is not signed a second time; the way on is another run, which is held', async () => {
    const { ownerRun: run } = (await actionByKey(story.db, 'tiny:2026-03')) ?? { ownerRun: '' };
    await story.fail({ key: 'tiny:2026-03', fence: '3' } as Parameters<Story['fail']>[0], 'connection_lost');
    await expect(releaseRun(story.db, { run, ...by })).rejects.toMatchObject({
      code: 'already_released',
      remedy: expect.stringMatching(/^npx onceper run tiny --period 2026-03 opens another run/),
    });
    const other = await story.open('2026-03');
    expect(other).toMatchObject({ decision: 'held', code: 'exhausted' });
    await releaseRun(story.db, { run: other.run, ...by });
    await story.open('2026-03', { startId: other.run });
    expect(await actionByKey(story.db, 'tiny:2026-03')).toMatchObject({ state: 'admitted', ownerRun: other.run });
  });
});

describe('a run that waits for nobody', () => {
  test('is not released: the owner of a done key, its duplicate, a running one', async () => {
    const { run } = await story.settle('2026-04');
    const duplicate = await story.open('2026-04');
    const running = await story.open('2026-05');
    for (const id of [run, duplicate.run, running.run]) {
      await expect(releaseRun(story.db, { run: id, ...by })).rejects.toMatchObject({ code: 'nothing_to_release' });
      expect(await runByStartId(story.db, id)).toMatchObject({ releasedBy: null });
    }
  });

  test('nor is one that does not exist', async () => {
    await expect(releaseRun(story.db, { run: 'nobody', ...by })).rejects.toMatchObject({ code: 'unknown_run' });
  });
});
