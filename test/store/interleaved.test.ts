import { expect, test } from 'vitest';
import { actionByKey } from '../../src/store/actions.ts';
import { attemptsOfKey } from '../../src/store/attempts.ts';
import { cancelAction, skipAction } from '../../src/store/stop.ts';
import { claim, close, endAttempt, mustClaim, performOne } from '../support/ledger.ts';
import { useTinyKeys } from '../support/tiny-keys.ts';

const keys = useTinyKeys();
const { interruptions, mishaps, services, admitted } = keys;
const failed = { outcome: 'failed', code: 'boom', detail: null, slicesBegun: 1 } as const;
const outcomes = async () => (await attemptsOfKey(keys.db, keys.key)).map((attempt) => attempt.outcome);

test('a claim that a zombie of a lower pass overtakes by a moment supersedes it at once', async () => {
  const run = await admitted();
  await mustClaim(services(), { run, pass: 1 });
  mishaps.beforeTransaction = async () => void (await mustClaim(services(), { run, pass: 2 }));
  expect(await mustClaim(services(), { run, pass: 3 })).toMatchObject({ fence: '3', attempt: 3 });
  expect(await outcomes()).toEqual(['superseded', 'superseded', null]);
});

test('a claim that wakes up after a later pass of its execution came and went is granted nothing', async () => {
  const run = await admitted();
  mishaps.beforeTransaction = async () => {
    const later = await mustClaim(services(), { run, pass: 2 });
    await endAttempt(services(), { ...later, ...failed });
  };
  const woken = await claim(services(), { run, execution: 'execution-1', pass: 1 });
  expect(woken).toMatchObject({ kind: 'superseded', pass: 2 });
  expect(await actionByKey(keys.db, keys.key)).toMatchObject({ state: 'failed', fence: 1n });
});

test('a first claim that slept in the seal, while another sealed and failed, takes over what that one planned', async () => {
  const run = await admitted();
  interruptions.seal = async () => {
    const other = await mustClaim(services(), { run, execution: 'other' });
    await performOne(services(), other, 0);
    await endAttempt(services(), { ...other, ...failed });
  };
  expect(await mustClaim(services(), { run })).toMatchObject({ fence: '2', slices: [1] });
  expect(await outcomes()).toEqual(['failed', null]);
});

test('a refused seal that another claim overtakes is not recorded, and that one holds the lease', async () => {
  const run = await admitted();
  interruptions.refusesSeal = true;
  interruptions.seal = () => {
    mishaps.beforeTransaction = async () => {
      interruptions.refusesSeal = false;
      await mustClaim(services(), { run, execution: 'other' });
    };
    return Promise.resolve();
  };
  expect(await claim(services(), { run, execution: 'execution-1', pass: 1 })).toMatchObject({ kind: 'busy' });
  expect(await outcomes()).toEqual([null]);
});

test('a close by an earlier holder is told that its lease is lost, not what its successor has left to do', async () => {
  const run = await admitted();
  const old = await mustClaim(services(), { run, pass: 1 });
  const now = await mustClaim(services(), { run, pass: 2 });
  expect(await close(services(), old)).toEqual({ kind: 'lease_lost' });
  expect(await close(services(), now)).toEqual({ kind: 'slices_left', left: 2 });
});

test('a close that the next pass overtakes in its middle leaves no document, and its successor writes it', async () => {
  const run = await admitted();
  const old = await mustClaim(services(), { run, pass: 1 });
  for (const slice of old.slices) await performOne(services(), old, slice);
  interruptions.close = async () => void (await mustClaim(services(), { run, pass: 2 }));
  expect(await close(services(), old)).toEqual({ kind: 'lease_lost' });
  expect(await actionByKey(keys.db, keys.key)).toMatchObject({ state: 'running', fence: 2n, result: null });
  expect(await close(services(), { key: keys.key, fence: '2' })).toMatchObject({ kind: 'done' });
});

/** Begins a slice of the grant and holds it in its middle until the work beside it is over. */
async function besideSlice(
  grant: Parameters<typeof performOne>[1],
  work: (goOn: () => Promise<void>) => Promise<void>,
) {
  const inside = signal();
  const release = signal();
  interruptions.perform = async () => {
    inside.give();
    await release.given;
  };
  const slice = performOne(services(), grant, 0);
  await inside.given;
  try {
    await work(async () => {
      release.give();
      expect(await slice).toEqual({ kind: 'performed' });
    });
  } finally {
    release.give();
    await slice;
  }
}

test('an attempt ends only when its slices in flight have: what they finish counts for its budget', async () => {
  const grant = await mustClaim(services(), { run: await admitted() });
  await besideSlice(grant, async (goOn) => {
    const end = endAttempt(services(), { ...grant, ...failed });
    await keys.untilBlocked('the end to wait for the slice');
    // The lease went first, so that no further slice can keep the end waiting.
    expect(await performOne(services(), grant, 1)).toEqual({ kind: 'lease_lost' });
    await goOn();
    expect(await end).toMatchObject({ kind: 'again', spent: 0 });
  });
  expect(await attemptsOfKey(keys.db, keys.key)).toMatchObject([{ outcome: 'failed', slicesFinished: 1 }]);
});

test('a grant comes only when the slices in flight have ended, and leaves out what they finished', async () => {
  const run = await admitted();
  await besideSlice(await mustClaim(services(), { run, pass: 1 }), async (goOn) => {
    const next = mustClaim(services(), { run, pass: 2 });
    await keys.untilBlocked('the grant to wait for the slice');
    await goOn();
    expect(await next).toMatchObject({ fence: '2', slices: [1] });
  });
});

function signal(): { readonly given: Promise<void>; readonly give: () => void } {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

test('a skip during which the period is claimed and partly settled is undone', async () => {
  const run = await admitted();
  const { db, key, period } = keys;
  const skip = { key, job: 'tiny', period, actor: 'os:ann', reason: 'no trade', ruleVersion: 1, release: 'test' };
  const meanwhile = async () => {
    const grant = await mustClaim(services(), { run });
    await performOne(services(), grant, 0);
    await endAttempt(services(), { ...grant, ...failed });
  };
  await expect(skipAction(db, skip, meanwhile)).rejects.toMatchObject({ code: 'skip_raced' });
  expect(await actionByKey(db, key)).toMatchObject({ state: 'failed', skippedReason: null });
});

test('a cancel that a claim overtakes between its two transactions says so and stops nothing', async () => {
  const run = await admitted();
  await mustClaim(services(), { run, pass: 1 });
  mishaps.beforeTransaction = async () => void (await mustClaim(services(), { run, pass: 2 }));
  expect(
    await cancelAction(services().db, { key: keys.key, actor: 'os:ann', reason: 'wrong rule', lockTimeout: 5_000 }),
  ).toEqual({ kind: 'busy' });
  expect(await actionByKey(keys.db, keys.key)).toMatchObject({ state: 'running', fence: 2n });
});
