import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import type { StatedSettings } from '../../src/gateway/simulator/settings.ts';
import { createStripeGateway } from '../../src/gateway/stripe.ts';
import { resumeDestination } from '../../src/ops/destinations.ts';
import { checkDestinations } from '../../src/ops/doctor-destinations.ts';
import type { RelayEvent } from '../../src/relay/events.ts';
import type { RelayOptions } from '../../src/relay/plan.ts';
import { relayOnce, runRelay } from '../../src/relay/relay.ts';
import { countPausedEffects, readPause } from '../../src/store/destinations.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { type StripeFake, startStripeFake } from '../gateway/stripe-fake.ts';
import { fates, insertEffect, insertEffects, insertNotice, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { FAST, gatewayTo, rowOf, servicesOf } from './harness.ts';

const ledger = useTestLedger();
const bank = useTestBank();
const gateways: Gateway[] = [];
let stop: AbortController;
let key: string;
let stripe: StripeFake;

beforeEach(async () => {
  key = await ledger.freshKey();
  await ledger.db.query('truncate public.fate');
  await ledger.db.query(
    `update onceper.destination set state = 'open', code = null, status = null, probe_at = null, probes = 0`,
  );
  stripe = await startStripeFake();
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  for (const gateway of gateways.splice(0)) await gateway.close();
  await stripe.stop();
});

const QUICK: RelayOptions = { ...FAST, probe: { firstMs: 30, capMs: 120 }, pollMs: { first: 5, cap: 20 } };
const HELD_OFF: RelayOptions = { ...FAST, probe: { firstMs: 3_600_000, capMs: 3_600_000 } };
const CLOSED = ['m-3', 'm-5', 'm-8'];

/** A counterparty that gives one answer about us, until it is told that all is well but for three closed accounts. */
interface Barring {
  readonly gateway: Gateway;
  readonly mend: () => Promise<void>;
  /** How many transfers each number has made. */
  readonly executed: () => Map<string, number>;
}

async function httpBarring(settings: StatedSettings, closed = CLOSED): Promise<Barring> {
  const simulator = await bank.start({ ...settings, closed });
  const gateway = gatewayTo(simulator.url, { timeoutMs: 5_000 });
  gateways.push(gateway);
  return {
    gateway,
    async mend() {
      const body = JSON.stringify({ closed });
      await fetch(`${simulator.url}/control/modes`, { method: 'PUT', body });
    },
    executed: () => bank.executed(),
  };
}

/** Stripe says a lack of balance with 400, and repeats it from memory for the same key when there is balance again. */
async function stripeBarring(): Promise<Barring> {
  stripe.hasBalance = false;
  for (const account of CLOSED) stripe.closed.add(account);
  const gateway = createStripeGateway({
    url: stripe.url,
    key: 'sk_test_1',
    keyWindowMs: 86_400_000,
    visibilityDelayMs: 0,
    timeoutMs: 5_000,
  });
  gateways.push(gateway);
  return {
    gateway,
    mend: async () => void (stripe.hasBalance = true),
    executed() {
      const times = new Map<string, number>();
      for (const { transfer_group: group } of stripe.transfers)
        times.set(group ?? '', (times.get(group ?? '') ?? 0) + 1);
      return times;
    },
  };
}

const noBalance = (): StatedSettings => ({
  mix: [{ mode: 'refused', percent: 100 }],
  refusal: { status: 402, code: 'balance_insufficient' },
});

/** Makes the pause, and what was tried since, an hour older: the past as a test needs it. */
async function anHourPasses(): Promise<void> {
  await ledger.db.query(`update onceper.destination set since = since - interval '1 hour'`);
  await ledger.db.query(
    `update onceper.outbox set first_sent_at = first_sent_at - interval '1 hour', last_sent_at = last_sent_at - interval '1 hour'
      where key = $1`,
    [key],
  );
}

describe('a month of payouts through an hour in which every answer is about us', () => {
  test.each([
    ['402 for want of balance', 700, () => httpBarring(noBalance()), '402 balance_insufficient'],
    ['400 for want of balance, as Stripe tells it', 700, stripeBarring, '400 balance_insufficient'],
    ['403 to everything', 70, () => httpBarring({ everything: { status: 403 } }), '403 http_403'],
    ['404 to everything', 70, () => httpBarring({ everything: { status: 404 } }), '404 http_404'],
    ['410 to everything', 70, () => httpBarring({ everything: { status: 410, code: 'gone' } }), '410 gone'],
  ] as const)(
    '(%s) is paid once under its first numbers, and three closed accounts fail alone',
    async (_, count, open, told) => {
      const numbers = await insertEffects(ledger.db, key, count);
      const closed = numbers.filter((number) => CLOSED.some((subject) => number.includes(`:${subject}:`)));
      const { gateway, mend, executed } = await open();
      const events: RelayEvent[] = [];
      const running = runRelay(servicesOf(ledger, gateway), {
        ...QUICK,
        signal: stop.signal,
        onEvent: (event) => events.push(event),
      });
      await waitFor(async () => ((await readPause(ledger.db))?.probes ?? 0) >= 3, { what: 'three probes' });
      await anHourPasses();
      const [row] = await checkDestinations(ledger.db);
      expect(row).toMatchObject({ state: 'fail', detail: expect.stringContaining(`by ${told}`) as string });
      expect(row?.detail).toMatch(/paused since .* \(1 h/);
      expect(row?.remedy).toContain('npx onceper destination resume accounts');
      expect(await countPausedEffects(ledger.db)).toBeGreaterThanOrEqual(count - closed.length);
      expect(executed()).toEqual(new Map());
      expect(Object.keys(await effectCounts(ledger.db, key))).not.toContain('dead');
      await mend();
      await waitFor(
        async () => {
          const { succeeded = 0, failed = 0 } = await effectCounts(ledger.db, key);
          return succeeded + failed === count;
        },
        { what: 'every payout to have its fate', timeoutMs: 30_000 },
      );
      stop.abort();
      await running;
      expect(await effectCounts(ledger.db, key)).toEqual({ succeeded: count - CLOSED.length, failed: CLOSED.length });
      const paid = numbers.filter((number) => !closed.includes(number));
      expect(executed()).toEqual(new Map(paid.map((number) => [number, 1])));
      expect((await fates(ledger.db)).filter((fate) => fate.endsWith(' failed'))).toEqual(
        closed.map((number) => `${number} failed`).sort(),
      );
      for (const number of closed) expect(await rowOf(ledger, number)).toMatchObject({ code: 'account_closed' });
      expect(await readPause(ledger.db)).toBeNull();
      const said = events.filter(({ kind }) => kind === 'paused' || kind === 'resumed').map(({ kind }) => kind);
      expect(said.at(0)).toBe('paused');
      expect(said.at(-1)).toBe('resumed');
    },
    60_000,
  );
});

describe('while the counterparty is paused', () => {
  async function paused(count: number): Promise<{ numbers: string[]; barring: Barring }> {
    const numbers = await insertEffects(ledger.db, key, count);
    const barring = await httpBarring(noBalance(), []);
    await relayOnce(servicesOf(ledger, barring.gateway), { ...HELD_OFF, concurrency: 2 });
    return { numbers, barring };
  }

  test('what was taken with the first is given back unsent, and no relay takes any more', async () => {
    const { numbers, barring } = await paused(50);
    const { rows } = await ledger.db.query<{ attempts: number; count: number }>(
      `select attempts, count(*)::int4 as count from onceper.outbox where key = $1 and state = 'pending' group by 1 order by 1`,
      [key],
    );
    const tried = rows.find(({ attempts }) => attempts === 1)?.count ?? 0;
    expect(tried).toBeLessThan(10);
    expect(rows.find(({ attempts }) => attempts === 0)?.count).toBe(numbers.length - tried);
    expect(await relayOnce(servicesOf(ledger, barring.gateway), HELD_OFF)).toMatchObject({ taken: 0, sent: 0 });
  });

  test('what is told to others goes on', async () => {
    const { barring } = await paused(1);
    await insertNotice(ledger.db, { key, receiver: 'accounting' });
    expect(await relayOnce(servicesOf(ledger, barring.gateway), HELD_OFF)).toMatchObject({ taken: 1 });
  });

  test('one payout tries it at a time, of any number of relays, and its try is not counted', async () => {
    const { numbers, barring } = await paused(50);
    await ledger.db.query(`update onceper.destination set probe_at = clock_timestamp()`);
    const services = servicesOf(ledger, barring.gateway);
    const relays = await Promise.all(Array.from({ length: 4 }, () => relayOnce(services, HELD_OFF)));
    expect(relays.reduce((sum, { sent }) => sum + sent, 0)).toBe(1);
    const { rows } = await ledger.db.query<{ fresh: number }>(
      `select count(*)::int4 as fresh from onceper.outbox where key = $1 and attempts = 0 and first_sent_at is null`,
      [key],
    );
    expect(rows[0]?.fresh).toBeGreaterThan(numbers.length - 10);
    expect(await readPause(ledger.db)).toMatchObject({ probes: 1 });
  });

  test('no number of probes spends the budget of a single payout', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { gateway, mend } = await httpBarring(noBalance(), []);
    const budget = { tries: 2, timeMs: 0 };
    const services = servicesOf(ledger, gateway);
    await relayOnce(services, { ...HELD_OFF, budget });
    for (let probe = 0; probe < 4; probe += 1) {
      await ledger.db.query(`update onceper.destination set probe_at = clock_timestamp()`);
      await ledger.db.query(`update onceper.outbox set due_at = clock_timestamp() where key = $1`, [key]);
      expect(await relayOnce(services, { ...HELD_OFF, budget })).toMatchObject({ sent: 1, pending: 1 });
    }
    expect(await rowOf(ledger, number)).toMatchObject({ state: 'pending', attempts: 1 });
    await mend();
    await ledger.db.query(`update onceper.destination set probe_at = clock_timestamp()`);
    await ledger.db.query(`update onceper.outbox set due_at = clock_timestamp() where key = $1`, [key]);
    expect(await relayOnce(services, { ...HELD_OFF, budget })).toMatchObject({ succeeded: 1 });
  });

  test('a person’s word opens it at once, signed and audited', async () => {
    const { barring } = await paused(5);
    await barring.mend();
    const by = { name: 'accounts', actor: 'os:ann', reason: 'topped up' };
    expect(await resumeDestination(ledger.db, by)).toMatchObject({ state: 'paused', code: 'balance_insufficient' });
    await expect(resumeDestination(ledger.db, by)).rejects.toMatchObject({ code: 'nothing_to_resume' });
    await expect(resumeDestination(ledger.db, { ...by, name: 'bank' })).rejects.toMatchObject({
      code: 'unknown_destination',
    });
    const { rows } = await ledger.db.query(`select actor, verb, subject from onceper.audit order by seq desc limit 1`);
    expect(rows).toEqual([{ actor: 'os:ann', verb: 'resume', subject: 'accounts' }]);
    await ledger.db.query(`update onceper.outbox set due_at = clock_timestamp() where key = $1`, [key]);
    expect(await relayOnce(servicesOf(ledger, barring.gateway), HELD_OFF)).toMatchObject({ sent: 5 });
  });
});

test('an answer about us to a look-up pauses too, and what is unknown stays to be looked up', async () => {
  const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
  const { gateway, mend, executed } = await httpBarring({ numbers: { [number]: ['drop_after'] } });
  const services = servicesOf(ledger, gateway);
  await relayOnce(services, HELD_OFF);
  const { gateway: shut } = await (async () => {
    const other = gatewayTo((await bank.start({ everything: { status: 403 } })).url);
    gateways.push(other);
    return { gateway: other };
  })();
  await ledger.db.query(`update onceper.outbox set due_at = clock_timestamp() where key = $1`, [key]);
  expect(await relayOnce(servicesOf(ledger, shut), HELD_OFF)).toMatchObject({ looked_up: 1, sent: 0, unknown: 1 });
  expect(await readPause(ledger.db)).toMatchObject({ status: 403 });
  await mend();
  await ledger.db.query(`update onceper.destination set probe_at = clock_timestamp()`);
  await ledger.db.query(`update onceper.outbox set due_at = clock_timestamp() where key = $1`, [key]);
  expect(await relayOnce(services, HELD_OFF)).toMatchObject({ looked_up: 1, sent: 0, succeeded: 1 });
  expect(executed()).toEqual(new Map([[number, 1]]));
  expect(await readPause(ledger.db)).toBeNull();
});

test('one payout that is barred while others are paid holds nobody up for long, and is put before a person in the end', async () => {
  const numbers = await insertEffects(ledger.db, key, 20);
  const [poison = ''] = numbers;
  const settings = { numbers: { [poison]: ['refused' as const] }, refusal: { status: 400, code: 'odd_word' } };
  const simulator = await bank.start(settings);
  const gateway = gatewayTo(simulator.url);
  gateways.push(gateway);
  const running = runRelay(servicesOf(ledger, gateway), {
    ...QUICK,
    budget: { tries: 3, timeMs: 0 },
    signal: stop.signal,
  });
  await waitFor(async () => (await effectCounts(ledger.db, key)).succeeded === 19, { what: 'the others to be paid' });
  // What keeps it closed is now the poison alone: each of its tries is a probe, until a person opens it.
  await waitFor(
    async () => {
      if ((await readPause(ledger.db)) !== null) {
        await resumeDestination(ledger.db, { name: 'accounts', actor: 'os:ann', reason: 'others are paid' }).catch(
          (error: unknown) => expect(error).toMatchObject({ code: 'nothing_to_resume' }),
        );
      }
      return (await effectCounts(ledger.db, key)).needs_attention === 1;
    },
    { what: 'the poison to be put before a person' },
  );
  stop.abort();
  await running;
  expect(await rowOf(ledger, poison)).toMatchObject({ state: 'needs_attention', code: 'odd_word' });
});
