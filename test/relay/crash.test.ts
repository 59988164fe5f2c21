import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import type { StatedSettings } from '../../src/gateway/simulator/settings.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { fates, insertEffects, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { age, deliverAll, FAST, gatewayTo, servicesOf } from './harness.ts';
import type { ChildInput, Point } from './relay-child.ts';

const EFFECTS = 20;
const ledger = useTestLedger();
const bank = useTestBank();
const gateways: Gateway[] = [];
let key: string;
let numbers: string[];

beforeEach(async () => {
  key = await ledger.freshKey();
  await ledger.db.query('truncate public.fate');
  numbers = (await insertEffects(ledger.db, key, EFFECTS)).sort();
});
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
});

async function against(settings: StatedSettings) {
  const simulator = await bank.start(settings);
  const gateway = gatewayTo(simulator.url);
  gateways.push(gateway);
  return { simulator, services: servicesOf(ledger, gateway) };
}

function startChild(gatewayUrl: string, point: Point, options: Partial<ChildInput> = {}): ChildProcess {
  const input: ChildInput = { databaseUrl: ledger.url, gatewayUrl, timeoutMs: 1_000, point, options: FAST, ...options };
  const script = path.join(import.meta.dirname, 'relay-child.ts');
  return spawn(process.execPath, ['--import', 'tsx', script, JSON.stringify(input)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

async function killed(child: ChildProcess): Promise<void> {
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
  expect(signal).toBe('SIGKILL');
}

/** One transfer a number, all of them posted once, nothing left to do. */
async function expectAllPaidOnce(): Promise<void> {
  expect(await effectCounts(ledger.db, key)).toEqual({ succeeded: EFFECTS });
  expect(bank.executed()).toEqual(new Map(numbers.map((number) => [number, 1])));
  expect(await fates(ledger.db)).toEqual(numbers.map((number) => `${number} succeeded`).sort());
}

describe('a relay that is killed', () => {
  test.each<[string, Point]>([
    ['after its take, before a byte is sent', 'taken'],
    ['after an answer, before it is recorded', 'answered'],
    ['in the middle of recording', 'settling'],
    ['just after recording', 'recorded'],
  ])('%s, leaves at most one transfer a number, and the next relay finishes', async (_sentence, point) => {
    const { simulator, services } = await against({});
    await killed(startChild(simulator.url, point));
    await age(ledger, key, 0);
    const after = await relayOnce(services, FAST);
    if (point === 'recorded') expect(after.taken).toBeLessThan(EFFECTS);
    else expect(after).toMatchObject({ taken: EFFECTS, looked_up: EFFECTS });
    await deliverAll(services, key);
    await expectAllPaidOnce();
  });

  test('after the bytes and before the answer, leaves at most one transfer a number', async () => {
    const { simulator, services } = await against({ mix: [{ mode: 'slow', percent: 100 }], delayMs: 400 });
    const child = startChild(simulator.url, 'never');
    await waitFor(() => simulator.counts().posts > 0, { what: 'bytes to reach the counterparty', everyMs: 2 });
    child.kill('SIGKILL');
    await killed(child);
    await fetch(`${simulator.url}/control/modes`, { method: 'PUT', body: '{}' });
    await age(ledger, key, 0);
    await deliverAll(services, key);
    await expectAllPaidOnce();
  });

  test('after it counted a re-send and before its bytes, leaves the number to be looked up again', async () => {
    const { simulator, services } = await against({ mix: [{ mode: 'error_before', percent: 100 }] });
    expect(await relayOnce(services, FAST)).toMatchObject({ sent: EFFECTS, unknown: EFFECTS });
    await fetch(`${simulator.url}/control/modes`, { method: 'PUT', body: '{}' });
    await age(ledger, key, 0);
    await killed(startChild(simulator.url, 'resend'));
    const { rows } = await ledger.db.query(
      `select from onceper.outbox where key = $1 and state = 'sending' and attempts = 2`,
      [key],
    );
    expect(rows.length).toBeGreaterThan(0);
    await age(ledger, key, 0);
    await deliverAll(services, key);
    await expectAllPaidOnce();
  });
});

test('a relay that is stopped past its lease and goes on sends nothing, though the counterparty has forgotten every number', async () => {
  const { simulator, services } = await against({ forgetAfterMs: 0 });
  const child = startChild(simulator.url, 'stopped_when_taken', { timeoutMs: 100, options: { ...FAST, leaseMs: 1 } });
  const report = child.stdout === null ? '' : text(child.stdout);
  await waitFor(async () => (await effectCounts(ledger.db, key)).sending === EFFECTS, { what: 'the child’s take' });
  await deliverAll(services, key);
  child.kill('SIGCONT');
  await once(child, 'exit');
  expect(JSON.parse(await report)).toMatchObject({ taken: EFFECTS, sent: 0, released: 0 });
  await expectAllPaidOnce();
});
