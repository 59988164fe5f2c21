import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import type { StatedSettings } from '../../src/gateway/simulator/settings.ts';
import type { RelayCounts, RelayEvent } from '../../src/relay/events.ts';
import type { RelayOptions, RelayServices } from '../../src/relay/plan.ts';
import { relayOnce, runRelay } from '../../src/relay/relay.ts';
import { openDatabase, transaction } from '../../src/store/database.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { fates, insertEffect, insertEffects, testRegistry, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { deliverAll, FAST, gatewayTo, rowOf, servicesOf } from './harness.ts';

const ledger = useTestLedger(12);
const bank = useTestBank();
const gateways: Gateway[] = [];
let key: string;

beforeEach(async () => {
  key = await ledger.freshKey();
  await ledger.db.query('truncate public.fate');
});
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
});

async function against(settings: StatedSettings, options: Parameters<typeof gatewayTo>[1] = {}) {
  const simulator = await bank.start(settings);
  const gateway = gatewayTo(simulator.url, options);
  gateways.push(gateway);
  return { simulator, services: servicesOf(ledger, gateway) };
}

/** A relay that runs until `stop`. */
function running(services: RelayServices, options: RelayOptions = FAST): { stop: () => Promise<RelayCounts> } {
  const abort = new AbortController();
  const run = runRelay(services, { ...options, signal: abort.signal });
  return {
    stop() {
      abort.abort();
      return run;
    },
  };
}

const all = (count: number) => async () => (await effectCounts(ledger.db, key)).succeeded === count;

test('two relays at once share the work and pay each number once, whatever the counterparty drops', async () => {
  const numbers = await insertEffects(ledger.db, key, 400);
  const { services } = await against({
    mix: [
      { mode: 'drop_after', percent: 5 },
      { mode: 'error_before', percent: 5 },
      { mode: 'error_after', percent: 2 },
      { mode: 'cut', percent: 2 },
      { mode: 'busy', percent: 5 },
    ],
    retryAfterSeconds: 0,
  });
  const relays = [running(services, { ...FAST, batch: 50 }), running(services, { ...FAST, batch: 50 })];
  await waitFor(all(400), { what: 'every payout to succeed', timeoutMs: 25_000 });
  const [one, other] = await Promise.all(relays.map((relay) => relay.stop()));
  expect((one?.succeeded ?? 0) + (other?.succeeded ?? 0)).toBe(400);
  expect(bank.executed()).toEqual(new Map(numbers.map((number) => [number, 1])));
  expect(await fates(ledger.db)).toHaveLength(400);
});

test('an effect that commits after later ones were delivered is delivered, though its key had stopped delivering', async () => {
  const { services } = await against({});
  await transaction(ledger.db, {}, async (tx) => {
    await insertEffect(tx, { key, subject: 'm-1' });
    await insertEffect(ledger.db, { key, subject: 'm-2' });
    expect(await relayOnce(services, FAST)).toMatchObject({ taken: 1, succeeded: 1, cleared: 1 });
    await tx.query('update onceper.action set delivering = true where key = $1', [key]);
  });
  expect(await relayOnce(services, FAST)).toMatchObject({ taken: 1, succeeded: 1, cleared: 1 });
});

describe('with a counterparty that is slow', () => {
  test('a pool of two suffices and no connection is idle in a transaction', async () => {
    await insertEffects(ledger.db, key, 20);
    const { services } = await against({ mix: [{ mode: 'slow', percent: 100 }], delayMs: 500 });
    const two = openDatabase({ url: ledger.url, name: 'pool of two', max: 2 });
    const relay = running({ ...services, db: two }, { ...FAST, concurrency: 20 });
    let worst = 0;
    let samples = 0;
    await waitFor(
      async () => {
        const { rows } = await ledger.db.query<{ ms: number }>(
          `select coalesce(max(extract(epoch from clock_timestamp() - state_change) * 1000), 0)::float8 as ms
             from pg_stat_activity where application_name like 'pool of two%' and state like 'idle in transaction%'`,
        );
        worst = Math.max(worst, rows[0]?.ms ?? 0);
        samples += 1;
        return all(20)();
      },
      { what: 'the slow payouts to succeed', everyMs: 20 },
    );
    await relay.stop();
    await two.close();
    expect(samples).toBeGreaterThan(10);
    expect(worst).toBeLessThan(100);
  });

  test('a drain finishes what is in flight, gives back what has not begun, and takes nothing more', async () => {
    await insertEffects(ledger.db, key, 20);
    const { simulator, services } = await against({ mix: [{ mode: 'slow', percent: 100 }], delayMs: 300 });
    const events: RelayEvent[] = [];
    const relay = running(services, { ...FAST, concurrency: 4, onEvent: (event) => events.push(event) });
    await waitFor(() => simulator.counts().posts === 4, { what: 'four calls in flight', everyMs: 2 });
    expect(await relay.stop()).toMatchObject({ taken: 20, sent: 4, succeeded: 4, released: 16 });
    expect(events).toContainEqual({ kind: 'draining', inHand: 20 });
    const { rows } = await ledger.db.query(
      `select state, attempts, first_sent_at is null as unsent, count(*)::int4 as n from onceper.outbox where key = $1
        group by 1, 2, 3 order by 1`,
      [key],
    );
    expect(rows).toEqual([
      { state: 'pending', attempts: 0, unsent: true, n: 16 },
      { state: 'succeeded', attempts: 1, unsent: false, n: 4 },
    ]);
  });

  test('a drain cuts a call that outlasts the grace, and its effect is unknown', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { services } = await against({}, { timeoutMs: 50 });
    const sent = new AbortController();
    const deaf: Gateway = {
      ...services.gateway,
      send: (_number, _body, signal) =>
        new Promise((resolve) => {
          sent.abort();
          signal?.addEventListener('abort', () => resolve({ kind: 'unknown', code: 'aborted', status: null }));
        }),
    };
    const relay = running({ ...services, gateway: deaf });
    await waitFor(() => sent.signal.aborted, { what: 'the call to begin' });
    expect(await relay.stop()).toMatchObject({ unknown: 1 });
    expect(await rowOf(ledger, number)).toMatchObject({ state: 'unknown', code: 'aborted' });
  });

  test('an effect whose lease has become too short for a call is given back, uncounted, and delivered by a later take', async () => {
    await insertEffects(ledger.db, key, 8);
    const { services } = await against({ mix: [{ mode: 'slow', percent: 100 }], delayMs: 300 });
    const hasty = { ...FAST, leaseMs: 1, concurrency: 1 };
    const counts = await relayOnce(services, hasty);
    expect(counts.released).toBeGreaterThan(2);
    expect(counts.released + counts.succeeded).toBe(8);
    expect(await deliverAll(services, key)).toEqual({ succeeded: 8 });
    expect([...bank.executed().values()]).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
  });
});

describe('when the database fails', () => {
  test('in the middle of a recording, the answers are recorded again: posted once, nothing looked up', async () => {
    await insertEffects(ledger.db, key, 10);
    const { services } = await against({});
    let cuts = 0;
    const jobs = testRegistry(async (_numbers, tx) => {
      cuts += 1;
      if (cuts < 3) await tx.query('select pg_terminate_backend(pg_backend_pid())');
    });
    const counts = await relayOnce({ ...services, jobs }, FAST);
    expect(counts).toMatchObject({ sent: 10, looked_up: 0, succeeded: 10, unrecorded: 0 });
    expect(await fates(ledger.db)).toHaveLength(10);
  });

  test('for longer than the relay’s patience, the answers are found again by look-up', async () => {
    const numbers = await insertEffects(ledger.db, key, 10);
    const { services } = await against({});
    const jobs = testRegistry(async (_numbers, tx) => {
      await tx.query('select pg_terminate_backend(pg_backend_pid())');
    });
    const counts = await relayOnce({ ...services, jobs }, { ...FAST, recordPatienceMs: 100 });
    expect(counts).toMatchObject({ sent: 10, succeeded: 0, unrecorded: 10 });
    await ledger.db.query('update onceper.outbox set due_at = clock_timestamp() where key = $1', [key]);
    expect(await relayOnce(services, FAST)).toMatchObject({ looked_up: 10, sent: 0, succeeded: 10 });
    expect(bank.executed()).toEqual(new Map(numbers.map((number) => [number, 1])));
  });

  test('at a take, the relay tells it and goes on when the database is back', async () => {
    const { services } = await against({});
    const faults: string[] = [];
    await ledger.db.query('alter table onceper.outbox rename to outbox_away');
    const relay = running(services, {
      ...FAST,
      onEvent: (event) => void (event.kind === 'fault' && faults.push(event.step)),
    });
    await waitFor(() => faults.includes('take'), { what: 'a failing take' });
    await ledger.db.query('alter table onceper.outbox_away rename to outbox');
    await insertEffects(ledger.db, key, 3);
    await waitFor(all(3), { what: 'the payouts to succeed' });
    await relay.stop();
  });
});

test('a counterparty whose promises leave no moment for a safe re-send stops the start', async () => {
  const { services } = await against({}, { keyWindowMs: 60_000, visibilityDelayMs: 60_000 });
  await expect(relayOnce(services)).rejects.toMatchObject({ code: 'gateway_terms' });
});
