import { beforeEach, describe, expect, test } from 'vitest';
import { relayOnce } from '../../src/relay/relay.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { forced } from '../support/forced.ts';
import { fates, insertEffects, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { deliverAll, deliveriesOf, FAST, gatewayTo, rowOf, servicesOf } from './harness.ts';

const ledger = useTestLedger();
const bank = useTestBank();
const DAY_MS = 86_400_000;
beforeEach(async () => {
  await ledger.db.query('truncate public.fate');
});

/** What a restore does to rows that were copied before they were delivered. */
async function putBack(numbers: readonly string[]): Promise<void> {
  await forced(
    ledger.db,
    `update onceper.outbox set state = 'pending', fence = 0, attempts = 0, lookups = 0, first_sent_at = null, last_sent_at = null,
            due_at = clock_timestamp(), counterparty_id = null, code = null, final_at = null where number = any ($1::text[])`,
    [numbers],
  );
  await ledger.db.query(`update onceper.action set delivering = true where key = split_part($1, ':m-', 1)`, [
    numbers[0],
  ]);
  await ledger.db.query('truncate public.fate');
}

describe('a number whose period ended', () => {
  test('inside the key window is sent without a look-up', async () => {
    const numbers = await insertEffects(ledger.db, await ledger.freshKey(), 20);
    const simulator = await bank.start();
    const gateway = gatewayTo(simulator.url);
    expect(await relayOnce(servicesOf(ledger, gateway), FAST)).toMatchObject({ sent: 20, looked_up: 0, succeeded: 20 });
    expect(simulator.counts()).toMatchObject({ executed: numbers.length, lookUps: 0 });
    await gateway.close();
  });

  test.each([
    ['longer ago than the key window', 25],
    ['at a time that the ledger does not know', null],
    ['in the future by the database’s clock', -1],
  ])('%s is looked up before its first send, and sent under the same number', async (_when, hours) => {
    const old = await ledger.freshKey(hours);
    const numbers = await insertEffects(ledger.db, old, 20);
    const simulator = await bank.start();
    const gateway = gatewayTo(simulator.url, { keyWindowMs: DAY_MS });
    expect(await relayOnce(servicesOf(ledger, gateway), FAST)).toMatchObject({
      sent: 20,
      looked_up: 20,
      succeeded: 20,
    });
    expect(simulator.counts()).toMatchObject({ executed: 20, replayed: 0, lookUps: 20 });
    expect(await deliveriesOf(ledger, numbers[0] ?? '')).toEqual(['look_up not_found', 'send accepted']);
    expect(await rowOf(ledger, numbers[0] ?? '')).toMatchObject({ attempts: 1 });
    await gateway.close();
  });

  test('longer ago is never paid twice, though a restore made it look fresh and the counterparty has forgotten it', async () => {
    const old = await ledger.freshKey(25);
    const numbers = await insertEffects(ledger.db, old, 40);
    const simulator = await bank.start({ forgetAfterMs: 0 });
    const gateway = gatewayTo(simulator.url);
    await deliverAll(servicesOf(ledger, gateway), old);
    await putBack(numbers.slice(0, 30));
    expect(await relayOnce(servicesOf(ledger, gateway), FAST)).toMatchObject({ sent: 0, looked_up: 30, succeeded: 30 });
    expect([...bank.executed().values()]).toEqual(numbers.map(() => 1));
    expect(await fates(ledger.db)).toHaveLength(30);
    await gateway.close();
  });

  test('longer ago waits as it was while look-ups fail, and a refusal of its first send is a fact', async () => {
    const old = await ledger.freshKey(25);
    const [number = ''] = await insertEffects(ledger.db, old, 1);
    const down = await bank.start({ lookUpErrors: 100 });
    const gateway = gatewayTo(down.url);
    expect(await relayOnce(servicesOf(ledger, gateway), FAST)).toMatchObject({ sent: 0, looked_up: 1, pending: 1 });
    expect(await rowOf(ledger, number)).toMatchObject({ state: 'pending', code: 'internal' });
    await gateway.close();
    await down.stop();
    const up = await bank.start({ numbers: { [number]: ['refused'] } });
    const again = gatewayTo(up.url);
    expect(await deliverAll(servicesOf(ledger, again), old)).toEqual({ failed: 1 });
    await again.close();
  });
});

test('a lease that ends between the look-up and the send gives the effect back, unsent and uncounted', async () => {
  const old = await ledger.freshKey(25);
  await insertEffects(ledger.db, old, 1);
  const simulator = await bank.start();
  const gateway = gatewayTo(simulator.url);
  // Two calls a lease at most: the second would need a turn that the pace gives only after its end.
  const counts = await relayOnce(servicesOf(ledger, gateway), { ...FAST, callsPerSecond: 0.01 });
  expect(counts).toMatchObject({ looked_up: 1, sent: 0, released: 1 });
  expect(await effectCounts(ledger.db, old)).toEqual({ pending: 1 });
  const { rows } = await ledger.db.query(`select attempts, first_sent_at as "at" from onceper.outbox where key = $1`, [
    old,
  ]);
  expect(rows).toEqual([{ attempts: 0, at: null }]);
  await gateway.close();
});

test('relays at once, over restored rows, answers that are lost and numbers that are forgotten: one transfer a number', async () => {
  const old = await ledger.freshKey(25);
  const numbers = await insertEffects(ledger.db, old, 60);
  const simulator = await bank.start({
    forgetAfterMs: 86_400_000,
    mix: [
      { mode: 'drop_after', percent: 30 },
      { mode: 'drop_before', percent: 20 },
    ],
  });
  const gateway = gatewayTo(simulator.url);
  const both = [servicesOf(ledger, gateway), servicesOf(ledger, gateway)];
  await Promise.all(both.map((services) => relayOnce(services, FAST)));
  await putBack(numbers);
  await Promise.all(both.map((services) => deliverAll(services, old)));
  await waitFor(async () => (await effectCounts(ledger.db, old)).succeeded === 60, { what: 'every payout' });
  expect([...bank.executed().values()]).toEqual(numbers.map(() => 1));
  await gateway.close();
});
