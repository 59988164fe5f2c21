import { expect, test } from 'vitest';
import { type NewAction, winAction } from '../../src/store/actions.ts';
import { asTx, connect } from '../../src/store/database.ts';
import { useTinyKeys } from '../support/tiny-keys.ts';

const keys = useTinyKeys();

/** Wins the test's key for a run in a transaction that stays open while a second run tries; without the job's lock. */
async function winWhileUndecided(end: 'commit' | 'rollback'): Promise<readonly [first: boolean, second: boolean]> {
  const { db, key, period } = keys;
  const action = { key, job: 'tiny', period, fingerprint: '-', overrides: {}, ruleVersion: 1, release: 'test' };
  const by = (ownerRun: string): NewAction => ({ ...action, ownerRun, startWindowMs: 1_000 });
  const client = await connect(db);
  const tx = asTx(client);
  try {
    await tx.query('begin');
    const first = await winAction(tx, by('run-1'));
    const second = winAction(db, by('run-2'));
    await keys.untilBlocked('the second run to wait for the first');
    await tx.query(end);
    return [first, await second];
  } finally {
    client.release();
  }
}

test('a key that another is winning at this moment is waited for, and lost without an error', async () => {
  expect(await winWhileUndecided('commit')).toEqual([true, false]);
});

test('a key that another did not win after all is won by the one that waited', async () => {
  expect(await winWhileUndecided('rollback')).toEqual([true, true]);
});
