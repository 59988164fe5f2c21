import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { retryEffect } from '../../src/ops/outbox.ts';
import { relayOnce, runRelay } from '../../src/relay/relay.ts';
import { noticeCounts } from '../../src/store/outbox-read.ts';
import { forced } from '../support/forced.ts';
import { insertNotice, useTestLedger } from '../support/ledger-rows.ts';
import { type Treatment, useTestReceivers } from '../support/receiver.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { age, rowOf } from './harness.ts';
import type { ChildInput } from './relay-child.ts';
import { QUICK, tellAll, useServices } from './telling.ts';

const ledger = useTestLedger();
const bank = useTestBank();
const receiver = useTestReceivers();
const towards = useServices(ledger, bank);
let key: string;

beforeEach(async () => {
  key = await ledger.freshKey();
});

describe('per-subject order', () => {
  /** A second key that delivers too, whose notice waits for the first one's. */
  async function twoMonths(): Promise<{ first: string; second: string; secondKey: string }> {
    const secondKey = await ledger.freshKey();
    await ledger.db.query('update onceper.action set delivering = true where key = $1', [key]);
    const first = await insertNotice(ledger.db, { key, receiver: 'accounting' });
    const second = await insertNotice(ledger.db, { key: secondKey, receiver: 'accounting', waitsFor: first });
    return { first, second, secondKey };
  }

  test('a notice is not taken before the one that it waits for has its fate, however often that is tried', async () => {
    const accounting = await receiver();
    accounting.treat((_, nth) => (nth < 4 ? { status: 503 } : { status: 200 }));
    const { first, second } = await twoMonths();
    const services = await towards({ accounting });
    const heard = async () => {
      await relayOnce(services, QUICK);
      return accounting.received.length === 5;
    };
    await waitFor(heard, { what: 'both months' });
    expect(accounting.received.map(({ id }) => id)).toEqual([first, first, first, first, second]);
    expect(await rowOf(ledger, second)).toMatchObject({ state: 'succeeded', attempts: 1 });
  });

  test('one that is dead holds the later ones of its receiver until a person has decided', async () => {
    const [accounting, archive] = [await receiver(), await receiver()];
    const { first, second, secondKey } = await twoMonths();
    const other = await insertNotice(ledger.db, { key: secondKey, receiver: 'archive' });
    await forced(ledger.db, `update onceper.outbox set state = 'dead', code = 'http_400' where number = $1`, [first]);
    const services = await towards({ accounting, archive });
    await relayOnce(services, QUICK);
    expect(archive.received.map(({ id }) => id)).toEqual([other]);
    expect(accounting.received).toEqual([]);
    await retryEffect(ledger.db, { number: first, actor: 'os:ann', reason: 'mended' });
    await relayOnce(services, QUICK);
    await relayOnce(services, QUICK);
    expect(accounting.received.map(({ id }) => id)).toEqual([first, second]);
  });

  test('one that was refused for good lets the later ones go on', async () => {
    const accounting = await receiver();
    accounting.treat(({ id }) => ({ status: id.startsWith(key) ? 410 : 200 }));
    const { second } = await twoMonths();
    const services = await towards({ accounting });
    await relayOnce(services, QUICK);
    await relayOnce(services, QUICK);
    expect(await rowOf(ledger, second)).toMatchObject({ state: 'succeeded' });
  });

  test('of a year is kept by three relays at once, whatever a receiver does to every message', async () => {
    const [accounting, archive] = [await receiver(), await receiver()];
    const moods: Treatment[] = [{ status: 500 }, { status: 200 }, 'drop', { status: 429 }, 'hang', { status: 204 }];
    for (const one of [accounting, archive]) one.treat((_, nth) => moods[nth % moods.length] ?? { status: 200 });
    const keys = [key];
    for (let month = 2; month <= 12; month += 1) keys.push(await ledger.freshKey());
    await ledger.db.query('update onceper.action set delivering = true where key = any ($1::text[])', [keys]);
    for (const name of ['accounting', 'archive']) {
      let waitsFor: string | undefined;
      for (const one of keys) {
        const chained = waitsFor === undefined ? {} : { waitsFor };
        waitsFor = await insertNotice(ledger.db, { key: one, receiver: name, ...chained });
      }
    }
    const services = await towards({ accounting, archive }, 150);
    const stop = new AbortController();
    const relays = [1, 2, 3].map(() =>
      runRelay(services, { ...QUICK, pollMs: { first: 5, cap: 20 }, signal: stop.signal }),
    );
    const told = async () => {
      const counts = await Promise.all(keys.map((one) => noticeCounts(ledger.db, one)));
      return counts.every(({ succeeded }) => succeeded === 2);
    };
    await waitFor(told, { what: 'a year to be told' });
    stop.abort();
    await Promise.all(relays);
    for (const { received } of [accounting, archive]) {
      expect(received.every(({ isGenuine }) => isGenuine)).toBe(true);
      // Each month's first message comes after the last one of the month before it.
      const ids = received.map(({ id }) => id);
      expect(ids).toEqual(ids.toSorted());
      expect(new Set(ids).size).toBe(12);
      expect(new Set(received.map(({ id, body }) => id + body)).size).toBe(12);
    }
  });

  test('holds through the death of a relay between the answer and its record, and every message has its id', async () => {
    const accounting = await receiver();
    const { first, second } = await twoMonths();
    const services = await towards({ accounting });
    const input: ChildInput = {
      databaseUrl: ledger.url,
      gatewayUrl: 'http://127.0.0.1:1',
      receiverUrl: accounting.url,
      timeoutMs: 1_000,
      point: 'told',
      options: { ...QUICK, leaseMs: 600_000 },
    };
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', path.join(import.meta.dirname, 'relay-child.ts'), JSON.stringify(input)],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    expect((await once(child, 'exit'))[1]).toBe('SIGKILL');
    expect(accounting.received.map(({ id }) => id)).toEqual([first]);
    await relayOnce(services, QUICK);
    expect(accounting.received).toHaveLength(1);
    await age(ledger, key, 0);
    expect(await tellAll(services, key)).toEqual({ succeeded: 1 });
    await relayOnce(services, QUICK);
    expect(accounting.received.map(({ id }) => id)).toEqual([first, first, second]);
    expect(accounting.received[1]?.body).toBe(accounting.received[0]?.body);
  });
});
