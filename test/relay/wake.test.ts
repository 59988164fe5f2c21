import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import type { RelayEvent } from '../../src/relay/events.ts';
import { runRelay } from '../../src/relay/relay.ts';
import { transaction } from '../../src/store/database.ts';
import { markDelivering } from '../../src/store/outbox-people.ts';
import { listenDelivering, notifyDelivering } from '../../src/store/wake.ts';
import { insertEffect, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { FAST, gatewayTo, servicesOf } from './harness.ts';

const ledger = useTestLedger(8);
const bank = useTestBank();
const gateways: Gateway[] = [];
const ends: (() => Promise<void>)[] = [];
let key: string;

beforeEach(async () => {
  key = await ledger.freshKey();
  await ledger.db.query('truncate public.fate');
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  for (const gateway of gateways.splice(0)) await gateway.close();
});

async function services() {
  const gateway = gatewayTo((await bank.start()).url);
  gateways.push(gateway);
  return servicesOf(ledger, gateway);
}

/** Waits until a connection listens, and so has looked once. */
async function listening(): Promise<void> {
  await waitFor(
    async () => {
      const { rowCount } = await ledger.db.query(
        `select from pg_stat_activity where application_name like '% listen' and query like 'listen %' and state = 'idle'`,
      );
      return rowCount > 0;
    },
    { what: 'the listener' },
  );
}

test('a message wakes whoever listens when its transaction commits, and a lost connection is made again', async () => {
  const end = new AbortController();
  let heard = 0;
  const listener = listenDelivering(ledger.db, () => (heard += 1), end.signal);
  await waitFor(() => heard === 1, { what: 'the look at the start' });
  await transaction(ledger.db, {}, async (tx) => {
    await notifyDelivering(tx, key);
    expect(heard).toBe(1);
  });
  await waitFor(() => heard === 2, { what: 'the message' });
  await ledger.db.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name like '% listen' and datname = current_database()`,
  );
  await waitFor(() => heard === 3, { what: 'the look after the connection was made again' });
  await ledger.db.query(`select pg_notify('onceper_delivering', 'x')`);
  await waitFor(() => heard === 4, { what: 'a message on the new connection' });
  end.abort();
  await listener;
});

test('a relay that is told of work does not wait for its poll', async () => {
  const end = new AbortController();
  let idle = 0;
  let recorded = 0;
  const onEvent = ({ kind }: RelayEvent) => {
    if (kind === 'idle') idle += 1;
    if (kind === 'recorded') recorded += 1;
  };
  const neverByItself = { first: 600_000, cap: 600_000 };
  const run = runRelay(await services(), { ...FAST, pollMs: neverByItself, onEvent, signal: end.signal });
  ends.push(async () => {
    end.abort();
    await run;
  });
  await listening();
  await waitFor(() => idle > 0, { what: 'an idle relay' });
  for (const [round, subject] of ['m-1', 'm-2', 'm-3'].entries()) {
    await insertEffect(ledger.db, { key, subject });
    await transaction(ledger.db, {}, async (tx) => {
      await markDelivering(tx, key);
      await notifyDelivering(tx, key);
    });
    await waitFor(() => recorded > round, { what: 'the delivery' });
  }
});
