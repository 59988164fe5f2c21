import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/app/config.ts';
import { relayOptions } from '../../src/app/relay.ts';
import type { Gateway } from '../../src/gateway/port.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import { deliverAll, gatewayTo, receiversAt, rowOf, servicesOf } from '../relay/harness.ts';
import { tellAll } from '../relay/telling.ts';
import { insertEffect, insertNotice, useTestLedger } from '../support/ledger-rows.ts';
import { useTestReceivers } from '../support/receiver.ts';
import { useTestBank } from '../support/simulator.ts';
import { emptyHome, typed } from './command-line.ts';

const ledger = useTestLedger();
const bank = useTestBank();
const receiver = useTestReceivers();
const opened: { close(): Promise<void> }[] = [];
let key: string;

beforeEach(async () => {
  key = await ledger.freshKey();
});
afterEach(async () => {
  for (const adapter of opened.splice(0)) await adapter.close();
});

/** The options of a relay whose environment holds these variables. */
const optionsOf = (variables: Readonly<Record<string, string>>) =>
  relayOptions(loadConfig({ ONCEPER_HOME: emptyHome, ...variables }));

const SOON = { ONCEPER_GATEWAY_BACK_OFF: '1ms', ONCEPER_GATEWAY_BACK_OFF_CAP: '2ms', ONCEPER_GATEWAY_TRY_FOR: '1ms' };

async function busyBank(): Promise<Gateway> {
  const simulator = await bank.start({ mix: [{ mode: 'busy', percent: 100 }], retryAfterSeconds: 0 });
  const gateway = gatewayTo(simulator.url);
  opened.push(gateway);
  return gateway;
}

describe('of payouts', () => {
  test('as many tries as are configured are made, and then a payout that was never made is dead', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const options = optionsOf({ ...SOON, ONCEPER_GATEWAY_TRIES: '3' });
    expect(await deliverAll(servicesOf(ledger, await busyBank()), key, options)).toEqual({ dead: 1 });
    expect(await rowOf(ledger, number)).toMatchObject({ state: 'dead', attempts: 3 });
  });

  test('tries go on while the configured time lasts, however many there were, and wait as long as is configured', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const long = { ONCEPER_GATEWAY_BACK_OFF: '1h', ONCEPER_GATEWAY_BACK_OFF_CAP: '2h', ONCEPER_GATEWAY_TRY_FOR: '1d' };
    await relayOnce(servicesOf(ledger, await busyBank()), optionsOf({ ...long, ONCEPER_GATEWAY_TRIES: '1' }));
    const { state, attempts, waitMs } = await rowOf(ledger, number);
    expect([state, attempts]).toEqual(['pending', 1]);
    expect(waitMs).toBeGreaterThan(29 * 60_000);
    expect(waitMs).toBeLessThanOrEqual(60 * 60_000);
  });

  test('a payout without an answer is looked up as often as is configured, and then waits for a person', async () => {
    await insertEffect(ledger.db, { key, subject: 'm-1' });
    let asked = 0;
    const silent: Gateway = {
      properties: {
        name: 'silent',
        keyWindowMs: 86_400_000,
        visibilityDelayMs: 0,
        maxNumberLength: 255,
        timeoutMs: 500,
      },
      send: () => Promise.resolve({ kind: 'unknown', code: 'timeout', status: null }),
      lookUp() {
        asked += 1;
        return Promise.resolve({ kind: 'unknown', code: 'timeout', status: null });
      },
      list: () => Promise.resolve({ transfers: [], hasMore: false }),
      close: () => Promise.resolve(),
    };
    const options = optionsOf({ ...SOON, ONCEPER_GATEWAY_LOOK_UPS: '2' });
    expect(await deliverAll(servicesOf(ledger, silent), key, options)).toEqual({ needs_attention: 1 });
    expect(asked).toBe(2);
  });
});

describe('of messages to receivers', () => {
  const soon = {
    ONCEPER_RECEIVER_BACK_OFF: '1ms',
    ONCEPER_RECEIVER_BACK_OFF_CAP: '2ms',
    ONCEPER_RECEIVER_TRY_FOR: '1ms',
  };

  async function towards(treat: { readonly status: number }) {
    const accounting = await receiver();
    accounting.treat(() => treat);
    const [gateway, receivers] = [await busyBank(), receiversAt({ accounting: accounting.url })];
    opened.push(receivers);
    return { accounting, services: { ...servicesOf(ledger, gateway), receivers } };
  }

  test('as many tries as are configured are made, and then the message is dead', async () => {
    const number = await insertNotice(ledger.db, { key, receiver: 'accounting' });
    const { accounting, services } = await towards({ status: 500 });
    expect(await tellAll(services, key, optionsOf({ ...soon, ONCEPER_RECEIVER_TRIES: '2' }))).toEqual({ dead: 1 });
    expect(accounting.received.map(({ id }) => id)).toEqual([number, number]);
  });

  test('tries go on while the configured time lasts, and wait as long as is configured', async () => {
    const number = await insertNotice(ledger.db, { key, receiver: 'accounting' });
    const { services } = await towards({ status: 500 });
    const long = { ONCEPER_RECEIVER_BACK_OFF: '1h', ONCEPER_RECEIVER_BACK_OFF_CAP: '2h', ONCEPER_RECEIVER_TRIES: '1' };
    await relayOnce(services, optionsOf(long));
    const { state, waitMs } = await rowOf(ledger, number);
    expect(state).toBe('unknown');
    expect(waitMs).toBeGreaterThan(29 * 60_000);
    expect(waitMs).toBeLessThanOrEqual(60 * 60_000);
  });

  test('each receiver gets no more a second than is configured, and another is not slowed down by it', async () => {
    const [one, other] = [await receiver(), await receiver()];
    const times = new Map<string, number[]>([
      ['one', []],
      ['other', []],
    ]);
    for (const [name, heard] of [
      ['one', one],
      ['other', other],
    ] as const) {
      heard.treat(() => {
        times.get(name)?.push(performance.now());
        return { status: 204 };
      });
    }
    const receivers = receiversAt({ one: one.url, other: other.url });
    opened.push(receivers);
    for (let at = 0; at < 6; at += 1) {
      const own = at === 0 ? key : await ledger.freshKey();
      await insertNotice(ledger.db, { key: own, receiver: 'one' });
      if (at === 0) await insertNotice(ledger.db, { key: own, receiver: 'other' });
    }
    await ledger.db.query('update onceper.action set delivering = true');
    const services = { ...servicesOf(ledger, await busyBank()), receivers };
    await relayOnce(services, optionsOf({ ONCEPER_RECEIVER_RATE: '10' }));
    const heard = times.get('one') ?? [];
    expect(heard).toHaveLength(6);
    expect((heard.at(-1) ?? 0) - (heard[0] ?? 0)).toBeGreaterThan(400);
    expect((times.get('other')?.[0] ?? Infinity) - (heard[0] ?? 0)).toBeLessThan(400);
  });
});

test.each([
  ['ONCEPER_GATEWAY_TRIES', '0'],
  ['ONCEPER_GATEWAY_TRY_FOR', '0s'],
  ['ONCEPER_GATEWAY_LOOK_UPS', 'many'],
  ['ONCEPER_GATEWAY_BACK_OFF', '0ms'],
  ['ONCEPER_GATEWAY_BACK_OFF_CAP', '10ms'],
  ['ONCEPER_RECEIVER_TRIES', '-1'],
  ['ONCEPER_RECEIVER_TRY_FOR', '3 days'],
  ['ONCEPER_RECEIVER_BACK_OFF', '1'],
  ['ONCEPER_RECEIVER_BACK_OFF_CAP', '999ms'],
  ['ONCEPER_RECEIVER_RATE', '0.5'],
  ['ONCEPER_RECEIVER_TIMEOUT', '0s'],
  ['ONCEPER_GATEWAY_TIMEOUT', '0s'],
  ['ONCEPER_GATEWAY_PROBE', '0s'],
  ['ONCEPER_GATEWAY_PROBE_CAP', '29s'],
  ['ONCEPER_WEBHOOK_REPEATS_FOR', 'ever'],
])('%s=%s stops the start with exit code 2 and is named', async (name, value) => {
  const printed = await typed(['relay'], { [name]: value });
  expect(printed.code).toBe(2);
  expect(printed.err).toMatch(new RegExp(`^bad_configuration: .* \\(${name}\\) — `));
});
