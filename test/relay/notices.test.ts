import { beforeEach, describe, expect, test } from 'vitest';
import { retryEffect } from '../../src/ops/outbox.ts';
import { relayOnce, runRelay } from '../../src/relay/relay.ts';
import { transaction } from '../../src/store/database.ts';
import { freezeDelivery, thawDelivery } from '../../src/store/epoch.ts';
import { effectCounts, noticeCounts } from '../../src/store/outbox-read.ts';
import { beginRepeat } from '../../src/store/outbox-repeat.ts';
import { fates, insertEffect, insertEffects, insertNotice, take, useTestLedger } from '../support/ledger-rows.ts';
import { useTestReceivers } from '../support/receiver.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { age, deliveriesOf, rowOf } from './harness.ts';
import { QUICK, tellAll, useServices } from './telling.ts';

const ledger = useTestLedger();
const bank = useTestBank();
const receiver = useTestReceivers();
const towards = useServices(ledger, bank);
let key: string;

beforeEach(async () => {
  key = await ledger.freshKey();
  await ledger.db.query('truncate public.fate');
});

test('a notice goes to the receiver of its destination, once, signed, under its number, and posts nothing', async () => {
  const accounting = await receiver();
  const archive = await receiver();
  const number = await insertNotice(ledger.db, { key, receiver: 'accounting' });
  const payout = await insertEffect(ledger.db, { key, subject: 'm-1' });
  const services = await towards({ accounting, archive });
  expect(await relayOnce(services, QUICK)).toMatchObject({ taken: 2, sent: 2, succeeded: 2, cleared: 1 });
  expect(accounting.received).toMatchObject([{ id: number, isGenuine: true }]);
  expect(JSON.parse(accounting.received[0]?.body ?? '')).toMatchObject({ specversion: '1.0', id: number });
  expect(archive.received).toEqual([]);
  expect(bank.executed()).toEqual(new Map([[payout, 1]]));
  expect(await fates(ledger.db)).toEqual([`${payout} succeeded`]);
  expect(await effectCounts(ledger.db, key)).toEqual({ succeeded: 1 });
  expect(await noticeCounts(ledger.db, key)).toEqual({ succeeded: 1 });
  expect(await rowOf(ledger, number)).toMatchObject({ counterpartyId: number, attempts: 1 });
});

describe('a receiver that', () => {
  test('is down learns of it later, and payouts have finished meanwhile', async () => {
    const accounting = await receiver();
    await accounting.stop();
    const number = await insertNotice(ledger.db, { key, receiver: 'accounting' });
    await insertEffects(ledger.db, key, 20);
    const services = await towards({ accounting });
    await relayOnce(services, QUICK);
    expect(await effectCounts(ledger.db, key)).toEqual({ succeeded: 20 });
    expect(await rowOf(ledger, number)).toMatchObject({ state: 'pending', code: 'econnrefused', attempts: 1 });
    await accounting.start();
    expect(await tellAll(services, key)).toEqual({ succeeded: 1 });
    expect(accounting.received).toMatchObject([{ id: number, isGenuine: true }]);
  });

  test('never answers holds up neither payouts, though the relay makes one call at a time, nor another receiver', async () => {
    const [accounting, archive] = [await receiver(), await receiver()];
    accounting.treat(() => 'hang');
    for (const name of ['accounting', 'archive']) await insertNotice(ledger.db, { key, receiver: name });
    await insertEffects(ledger.db, key, 60);
    const services = await towards({ accounting, archive }, 600_000);
    const stop = new AbortController();
    const options = { ...QUICK, concurrency: 1, batch: 10, leaseMs: 2_000_000, signal: stop.signal };
    const run = runRelay(services, options);
    const paid = async () => (await effectCounts(ledger.db, key)).succeeded === 60 && archive.received.length === 1;
    await waitFor(paid, { what: 'payouts and archive' });
    expect(await noticeCounts(ledger.db, key)).toEqual({ sending: 1, succeeded: 1 });
    await accounting.stop();
    stop.abort();
    await run;
    expect(await noticeCounts(ledger.db, key)).toEqual({ unknown: 1, succeeded: 1 });
  });

  test.each([
    ['answers 500', { status: 500 }, 'send unknown http_500'],
    ['answers 404', { status: 404 }, 'send unknown http_404'],
    ['cuts the connection after reading', 'drop', expect.stringMatching(/^send unknown (und_err_socket|econnreset)$/)],
  ] as const)('%s is sent the same bytes again, without a look-up', async (_sentence, treatment, first) => {
    const accounting = await receiver();
    accounting.treat((_, nth) => (nth < 3 ? treatment : { status: 200 }));
    const number = await insertNotice(ledger.db, { key, receiver: 'accounting' });
    expect(await tellAll(await towards({ accounting }), key)).toEqual({ succeeded: 1 });
    expect(await deliveriesOf(ledger, number)).toEqual([first, first, 'send acknowledged']);
    expect(accounting.received.every(({ isGenuine }) => isGenuine)).toBe(true);
    expect(new Set(accounting.received.map(({ id, body }) => `${id} ${body}`)).size).toBe(1);
    expect(await rowOf(ledger, number)).toMatchObject({ attempts: 3 });
  });

  test('is slow to answer is told again, and recognises it by the id', async () => {
    const accounting = await receiver();
    accounting.treat((_, nth) => (nth === 1 ? 'hang' : { status: 200 }));
    const number = await insertNotice(ledger.db, { key, receiver: 'accounting' });
    expect(await tellAll(await towards({ accounting }, 150), key)).toEqual({ succeeded: 1 });
    expect(accounting.received.map(({ id }) => id)).toEqual([number, number]);
  });

  test('answers 410 is told no more of it', async () => {
    const accounting = await receiver();
    accounting.treat(() => ({ status: 410 }));
    const number = await insertNotice(ledger.db, { key, receiver: 'accounting' });
    expect(await relayOnce(await towards({ accounting }), QUICK)).toMatchObject({ failed: 1, cleared: 1 });
    expect(await rowOf(ledger, number)).toMatchObject({ state: 'failed', code: 'gone' });
    expect(await fates(ledger.db)).toEqual([]);
  });

  test('answers 429 is left alone for as long as Retry-After says', async () => {
    const accounting = await receiver();
    accounting.treat((_, nth) => (nth === 1 ? { status: 429, headers: { 'retry-after': '600' } } : { status: 200 }));
    const number = await insertNotice(ledger.db, { key, receiver: 'accounting' });
    const services = await towards({ accounting });
    expect(await relayOnce(services, QUICK)).toMatchObject({ pending: 1 });
    expect((await rowOf(ledger, number)).waitMs).toBeGreaterThan(590_000);
    await age(ledger, key, 0);
    expect(await tellAll(services, key)).toEqual({ succeeded: 1 });
  });

  test('takes nothing for good ends as dead, and a person’s retry keeps the number', async () => {
    const accounting = await receiver();
    accounting.treat(() => ({ status: 400 }));
    const number = await insertNotice(ledger.db, { key, receiver: 'accounting' });
    const services = await towards({ accounting });
    const notices = { budget: { tries: 3, timeMs: 0 }, backOff: { baseMs: 5, capMs: 5 } };
    expect(await tellAll(services, key, { ...QUICK, notices })).toEqual({ dead: 1 });
    expect(await rowOf(ledger, number)).toMatchObject({ code: 'http_400', attempts: 3 });
    expect(await relayOnce(services, QUICK)).toMatchObject({ taken: 0 });
    accounting.treat(() => ({ status: 200 }));
    const acted = await retryEffect(ledger.db, { number, actor: 'os:ann', reason: 'the receiver was mended' });
    expect(acted).toMatchObject({ from: 'dead', to: 'pending', delivering: true });
    expect(await tellAll(services, key)).toEqual({ succeeded: 1 });
    expect(new Set(accounting.received.map(({ id, body }) => `${id} ${body}`)).size).toBe(1);
  });

  test('the relay does not know is told later, by a relay that does', async () => {
    const accounting = await receiver();
    const number = await insertNotice(ledger.db, { key, receiver: 'accounting' });
    const services = await towards({ accounting });
    await relayOnce({ db: services.db, jobs: services.jobs, gateway: services.gateway }, QUICK);
    expect(await rowOf(ledger, number)).toMatchObject({ state: 'pending', code: 'receiver_unknown' });
    expect(await tellAll(services, key)).toEqual({ succeeded: 1 });
  });
});

test('while delivery is frozen nobody is told, and nothing that was taken is told again', async () => {
  const accounting = await receiver();
  accounting.treat(() => ({ status: 500 }));
  await insertNotice(ledger.db, { key, receiver: 'accounting' });
  const services = await towards({ accounting });
  await relayOnce(services, QUICK);
  await age(ledger, key, 0);
  const [taken] = await take(ledger.db, 1);
  await transaction(ledger.db, {}, (tx) => freezeDelivery(tx, 'a test'));
  if (taken === undefined) throw new Error('nothing was taken');
  expect(await beginRepeat(ledger.db, taken, 60_000)).toBeNull();
  expect(await relayOnce(services, QUICK)).toMatchObject({ taken: 0 });
  await transaction(ledger.db, {}, (tx) => thawDelivery(tx));
  expect(accounting.received).toHaveLength(1);
});

test('money that may have been sent is never sent again without a look-up, even if its notice’s way were taken', async () => {
  await insertEffect(ledger.db, { key, subject: 'm-1' });
  await take(ledger.db, 1);
  await age(ledger, key, 0);
  const [taken] = await take(ledger.db, 1);
  if (taken === undefined) throw new Error('nothing was taken');
  expect(taken.before).toBe('sending');
  expect(await beginRepeat(ledger.db, taken, 60_000)).toBeNull();
});
