import { afterAll, beforeAll, expect, test } from 'vitest';
import { approveRequest, executeApproval } from '../../../src/ops/approval/decide.ts';
import { requestApproval } from '../../../src/ops/approval/request.ts';
import { actionByKey } from '../../../src/store/actions.ts';
import { attemptsOfKey } from '../../../src/store/attempts.ts';
import { claim, performOne } from '../../support/ledger.ts';
import { createStory, type Story } from '../story.ts';

let story: Story;
beforeAll(async () => {
  story = await createStory();
});
afterAll(() => story.drop());

const parts = () => ({ registry: story.services.registry, release: 'test' });
const ask = (key: string) =>
  requestApproval(story.db, parts(), {
    kind: 'takeover',
    ask: { key },
    actor: 'os:ann',
    reason: 'the machine is gone',
  });
async function approveAndExecute({ approval: { id, digest } }: Awaited<ReturnType<typeof ask>>) {
  await approveRequest(story.db, { token: null, id, digest, actor: 'os:bob', reason: null });
  return executeApproval(story.db, parts(), { token: null, id, actor: 'os:bob' });
}

test('a live lease is ended by two people, and the next execution goes on at once with the slices that are left', async () => {
  const { run } = await story.open('2026-01');
  const grant = await story.claim(run);
  await story.perform(grant, 0);
  const next = { run, execution: 'execution-2', pass: 1 };
  expect(await claim(story.services, next)).toMatchObject({ kind: 'busy' });
  const asked = await ask('tiny:2026-01');
  expect(asked.approval.plan).toMatchObject({ fence: '1', run, execution: 'execution-1', pass: 1 });
  expect(await claim(story.services, next)).toMatchObject({ kind: 'busy' });
  expect(await approveAndExecute(asked)).toMatchObject({
    kind: 'executed',
    wake: { kind: 'owner', key: 'tiny:2026-01', run },
  });
  expect(await performOne(story.services, grant, 1)).toEqual({ kind: 'lease_lost' });
  expect(await claim(story.services, next)).toMatchObject({ kind: 'granted', fence: '2', slices: [1] });
  expect((await attemptsOfKey(story.db, 'tiny:2026-01'))[0]).toMatchObject({
    outcome: 'lease_expired',
    slicesFinished: 1,
  });
});

test('a takeover of a holder that was followed by another is refused: the one that was shown is gone', async () => {
  const { run } = await story.open('2026-02');
  await story.claim(run, 1);
  const asked = await ask('tiny:2026-02');
  await story.claim(run, 2);
  expect(await approveAndExecute(asked)).toMatchObject({
    kind: 'refused',
    code: 'world_moved',
    reason: 'pass was 1 and is 2',
  });
  expect((await actionByKey(story.db, 'tiny:2026-02'))?.leaseLeftMs).toBeGreaterThan(0);
});

test('there is nothing to take over where nobody holds a live lease', async () => {
  await story.open('2026-03');
  await expect(ask('tiny:2026-03')).rejects.toMatchObject({ code: 'nothing_to_take_over' });
  const { run } = await story.open('2026-04');
  await story.claim(run);
  await story.endLease('tiny:2026-04', 1_000);
  await expect(ask('tiny:2026-04')).rejects.toMatchObject({ code: 'nothing_to_take_over' });
  await expect(ask('tiny:2031-01')).rejects.toMatchObject({ code: 'unknown_key' });
});
