import { afterEach, expect, test, vi } from 'vitest';
import { leaseTimes } from '../../src/kernel/lease.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { renewLease } from '../../src/store/close.ts';
import { asTx, connect } from '../../src/store/database.ts';
import { claim, close, mustClaim, performOne } from '../support/ledger.ts';
import { useTinyKeys } from '../support/tiny-keys.ts';

const keys = useTinyKeys();
const { interruptions, services, admitted } = keys;
const renew = () => renewLease(keys.db, { key: keys.key, fence: 1n, times: leaseTimes(30_000) });
const endLease = () =>
  keys.db.query(`update onceper.action set lease_until = clock_timestamp() where key = $1`, [keys.key]);
afterEach(() => void vi.useRealTimers());

/** Begins the work while somebody holds the action's row, and ends the lease before the row is let go. */
async function whileTheLeaseEnds<T>(begin: () => Promise<T>): Promise<T> {
  const client = await connect(keys.db);
  const tx = asTx(client);
  try {
    await tx.query('begin');
    await tx.query(`select from onceper.action where key = $1 for update`, [keys.key]);
    const begun = begin();
    await keys.untilBlocked('what was begun to wait for the row');
    await tx.query(`update onceper.action set lease_until = clock_timestamp() where key = $1`, [keys.key]);
    await tx.query('commit');
    return await begun;
  } finally {
    client.release();
  }
}

test('a slice that began while the lease was live, and waited until it ended, writes nothing', async () => {
  const grant = await mustClaim(services(), { run: await admitted() });
  expect(await whileTheLeaseEnds(() => performOne(services(), grant, 0))).toEqual({ kind: 'lease_lost' });
});

test('a renewal that was asked while the lease was live, and waited until it ended, renews nothing', async () => {
  await mustClaim(services(), { run: await admitted() });
  expect(await whileTheLeaseEnds(renew)).toBe(false);
});

test('a close whose lease ends in its middle writes no document', async () => {
  const grant = await mustClaim(services(), { run: await admitted() });
  for (const slice of grant.slices) await performOne(services(), grant, slice);
  interruptions.close = async () => void (await endLease());
  expect(await close(services(), grant)).toEqual({ kind: 'lease_lost' });
  expect(await actionByKey(keys.db, keys.key)).toMatchObject({ state: 'running', result: null });
});

test('a process whose clock is decades behind takes no lease that ended for live', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date('1999-12-31T00:00:00Z') });
  const run = await admitted();
  const grant = await mustClaim(services(), { run });
  await endLease();
  expect(await performOne(services(), grant, 0)).toEqual({ kind: 'lease_lost' });
  expect(await renew()).toBe(false);
  expect(await close(services(), grant)).toEqual({ kind: 'lease_lost' });
  expect(await mustClaim(services(), { run, execution: 'other' })).toMatchObject({ fence: '2' });
});

test('a process whose clock is decades ahead takes no live lease for ended', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date('2099-12-31T00:00:00Z') });
  const run = await admitted();
  const grant = await mustClaim(services(), { run });
  expect(await claim(services(), { run, execution: 'other', pass: 1 })).toMatchObject({ kind: 'busy' });
  expect(await performOne(services(), grant, 0)).toEqual({ kind: 'performed' });
  expect(await renew()).toBe(true);
});
