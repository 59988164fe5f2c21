import { expect, test } from 'vitest';
import { createPace } from '../../src/relay/pace.ts';
import { runRelay } from '../../src/relay/relay.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { insertEffects, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { FAST, gatewayTo, servicesOf } from './harness.ts';

const ledger = useTestLedger();
const bank = useTestBank();
const never = new AbortController().signal;

test('turns are spaced, and one that would come too late is refused without using any', async () => {
  const pace = createPace(50);
  const began = performance.now();
  const turns = await Promise.all(Array.from({ length: 6 }, () => pace.turn(began + 10_000, never)));
  expect(turns).toEqual([true, true, true, true, true, true]);
  expect(performance.now() - began).toBeGreaterThanOrEqual(99);
  const slow = createPace(1);
  expect(await slow.turn(performance.now() + 10, never)).toBe(true);
  expect(await slow.turn(performance.now() + 10, never)).toBe(false);
});

test('an abort ends the wait for a turn', async () => {
  const pace = createPace(1);
  const end = new AbortController();
  await pace.turn(Infinity, end.signal);
  const waiting = pace.turn(Infinity, end.signal);
  end.abort();
  expect(await waiting).toBe(false);
});

test('a relay keeps to the calls a second that it is allowed, and delivers everything', async () => {
  const key = await ledger.freshKey();
  await insertEffects(ledger.db, key, 30);
  const gateway = gatewayTo((await bank.start()).url);
  const end = new AbortController();
  const run = runRelay(servicesOf(ledger, gateway), { ...FAST, callsPerSecond: 20, signal: end.signal });
  await waitFor(async () => (await effectCounts(ledger.db, key)).succeeded === 30, { what: 'the payouts' });
  end.abort();
  await run;
  await gateway.close();
  const times = bank.entries().flatMap(({ decision, at }) => (decision === 'executed' ? [Date.parse(at)] : []));
  expect(times).toHaveLength(30);
  // 29 gaps of 50 ms; a second window of any place in it holds at most 21, and some that the disk has delayed.
  expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1_300);
});
