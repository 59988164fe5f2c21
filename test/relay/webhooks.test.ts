import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import type { StatedSettings } from '../../src/gateway/simulator/settings.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import { openDatabase, transaction } from '../../src/store/database.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { recordOutcomes } from '../../src/store/outbox-record.ts';
import { storeWebhook } from '../../src/store/webhooks.ts';
import { forced } from '../support/forced.ts';
import { fates, insertEffect, insertEffects, take, testRegistry, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { FAST, gatewayTo, rowOf, servicesOf } from './harness.ts';
import { messageOf, sentEffect, useTestEndpoint, WEBHOOK_SECRET } from './webhook-endpoint.ts';

const ledger = useTestLedger(12);
const bank = useTestBank();
const endpoint = useTestEndpoint(ledger);
const { nextId, post } = endpoint;
const gateways: Gateway[] = [];
let key: string;

beforeEach(() => {
  key = endpoint.key;
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

test('a message is stored before it is answered, applied once, and posts the fate in the same transaction', async () => {
  const number = await sentEffect(ledger, key);
  expect(await post(messageOf(number, 'succeeded'))).toBe(204);
  expect(await endpoint.states()).toEqual(['transfer.succeeded applied']);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'succeeded', counterpartyId: 'tr_1' });
  expect(await fates(ledger.db)).toEqual([`${number} succeeded`]);
});

test('twice, and three at once, is once', async () => {
  const number = await sentEffect(ledger, key);
  const id = nextId();
  const answers = await Promise.all([1, 2, 3].map(() => post(messageOf(number, 'succeeded'), id)));
  answers.push(await post(messageOf(number, 'succeeded'), id), await post(messageOf(number, 'succeeded')));
  expect(answers).toEqual([204, 204, 204, 204, 204]);
  expect(await endpoint.states()).toEqual(['transfer.succeeded applied', 'transfer.succeeded stale']);
  expect(await fates(ledger.db)).toEqual([`${number} succeeded`]);
});

test('returned before succeeded is returned, with both postings, and the late one changes nothing', async () => {
  const number = await sentEffect(ledger, key);
  await post(messageOf(number, 'returned'));
  await endpoint.server.settled();
  await post(messageOf(number, 'succeeded'));
  await post(messageOf(number, 'pending'));
  expect(await endpoint.states()).toEqual([
    'transfer.returned applied',
    'transfer.succeeded stale',
    'transfer.pending stale',
  ]);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'returned' });
  expect(await fates(ledger.db)).toEqual([`${number} returned`, `${number} succeeded`]);
});

describe('refused without a trace', () => {
  test.each([
    ['forged', () => post(messageOf('n', 'succeeded'), nextId(), new Date(), { 'webhook-signature': 'v1,AAAA' }), 401],
    ['unsigned', () => fetch(endpoint.server.url, { method: 'POST', body: '{}' }).then((answer) => answer.status), 401],
    [
      'replayed after five minutes',
      () => post(messageOf('n', 'succeeded'), nextId(), new Date(Date.now() - 301_000)),
      401,
    ],
    ['no message', () => post('[]'), 400],
    ['too long', () => post(JSON.stringify({ type: 'x'.repeat(300_000), data: {} })), 413],
    [
      'elsewhere',
      () => fetch(endpoint.server.url.replace('/webhooks', '/'), { method: 'POST' }).then((a) => a.status),
      404,
    ],
  ] as const)('%s', async (_, send, status) => {
    expect(await send()).toBe(status);
    expect(await endpoint.states()).toEqual([]);
    expect(endpoint.events).toMatchObject([{ kind: 'refused', status }]);
  });
});

test('what nobody here knows is kept and put before a person, and the next message is served', async () => {
  const number = await sentEffect(ledger, key);
  await post(messageOf(`${key}:m-9:GBP:payout`, 'succeeded'));
  await post(JSON.stringify({ type: 'transfer.succeeded', data: { reference: number } }));
  await post(JSON.stringify({ type: 'account.updated', data: { anything: true } }));
  await post(messageOf(number, 'succeeded'));
  expect((await endpoint.states()).sort()).toEqual([
    'account.updated ignored other_type',
    'transfer.succeeded applied',
    'transfer.succeeded attention malformed_transfer',
    'transfer.succeeded attention unknown_number',
  ]);
});

test('an unknown status and another amount put the effect before a person', async () => {
  const number = await sentEffect(ledger, key);
  await post(messageOf(number, 'frozen'));
  expect(await endpoint.states()).toEqual(['transfer.frozen applied unknown_status']);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'needs_attention', code: 'unknown_status' });
  await forced(ledger.db, `update onceper.outbox set state = 'unknown', code = null where number = $1`, [number]);
  await post(messageOf(number, 'succeeded', { amount: '1251' }));
  await endpoint.server.settled();
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'needs_attention', code: 'found_different' });
  expect(await fates(ledger.db)).toEqual([]);
});

test('a relay in flight loses its fence to the webhook and records nothing over it', async () => {
  const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
  const [taken] = await take(ledger.db, 1);
  if (taken === undefined) throw new Error('nothing was taken');
  await post(messageOf(number, 'failed'));
  await endpoint.server.settled();
  const late = { kind: 'becomes', state: 'succeeded', delayMs: 0, code: null, counterpartyId: 'tr_1' } as const;
  const won = await transaction(ledger.db, {}, (tx) =>
    recordOutcomes(
      tx,
      [{ number, key, subject: 'm-1', fence: taken.fence, held: 'sending', verdict: late, tries: [] }],
      () => Promise.reject(new Error('a lost outcome is posted')),
    ),
  );
  expect([...won]).toEqual([]);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'failed' });
  expect(await fates(ledger.db)).toEqual([`${number} failed`]);
});

test('an effect that is believed unsent is looked up, never sent on top of what the counterparty told', async () => {
  const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
  const { simulator, services } = await against({});
  await fetch(`${simulator.url}/v1/transfers`, {
    method: 'POST',
    headers: { 'idempotency-key': number },
    body: JSON.stringify({ amount: '1250', currency: 'GBP', destination: 'm-1', reference: number }),
  });
  await post(messageOf(number, 'succeeded'));
  expect(await endpoint.states()).toEqual(['transfer.succeeded applied told_by_webhook']);
  expect(await relayOnce(services, FAST)).toMatchObject({ looked_up: 1, sent: 0, succeeded: 1 });
  expect(bank.executed().get(number)).toBe(1);
});

test('a message that was stored by a process that died is applied by the next one', async () => {
  const number = await sentEffect(ledger, key);
  await storeWebhook(ledger.db, {
    id: nextId(),
    type: 'transfer.succeeded',
    number,
    body: messageOf(number, 'succeeded'),
  });
  await endpoint.start();
  await waitFor(async () => (await rowOf(ledger, number)).state === 'succeeded', { what: 'the sweep' });
});

test('a posting that fails leaves effect and message as they were, and the message is tried again', async () => {
  const number = await sentEffect(ledger, key);
  let isBroken = true;
  await endpoint.server.stop();
  const jobs = testRegistry(() => (isBroken ? Promise.reject(new Error('no table')) : undefined));
  await endpoint.start({ jobs });
  expect(await post(messageOf(number, 'succeeded'))).toBe(204);
  expect(await endpoint.states()).toEqual(['transfer.succeeded stored unexpected']);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'pending_external' });
  isBroken = false;
  await waitFor(async () => (await rowOf(ledger, number)).state === 'succeeded', { what: 'the next try' });
  expect(await fates(ledger.db)).toEqual([`${number} succeeded`]);
});

test('a message that can not be stored is answered 503, so that its sender tries again', async () => {
  const away = openDatabase({ url: 'postgres://nobody@127.0.0.1:1/none', name: 'away', max: 1 });
  await endpoint.start({ db: away });
  expect(await post(messageOf('n', 'succeeded'))).toBe(503);
  await endpoint.server.stop();
  await away.close();
});

test('two hundred payouts, told of three times each and out of order, end as the counterparty’s journal says', async () => {
  const numbers = await insertEffects(ledger.db, key, 200);
  const { services } = await against({
    mix: [
      { mode: 'pending', percent: 40 },
      { mode: 'returned', percent: 10 },
      { mode: 'drop_after', percent: 10 },
    ],
    pendingBecomes: { status: 'failed', afterMs: 100 },
    webhooks: { url: endpoint.server.url, secret: WEBHOOK_SECRET, copies: 3, spreadMs: 300 },
  });
  const counts = await waitFor(
    async () => {
      await relayOnce(services, FAST);
      const found = await effectCounts(ledger.db, key);
      const { succeeded = 0, failed = 0, returned = 0 } = found;
      return succeeded + failed + returned === 200 ? found : null;
    },
    { what: 'every fate', timeoutMs: 20_000 },
  );
  const last = new Map(
    bank.entries().flatMap(({ transfer }) => (transfer === null ? [] : [[transfer.reference, transfer.status]])),
  );
  // A return that was looked up as it happened was told of before it was recorded, or will be: the last word counts.
  await waitFor(
    async () => {
      await endpoint.server.settled();
      const { rows } = await ledger.db.query<{ number: string; state: string }>(
        'select number, state from onceper.outbox where key = $1',
        [key],
      );
      return rows.every(({ number, state }) => last.get(number) === state);
    },
    { what: 'every effect to be what the journal says' },
  );
  expect(counts.failed ?? 0).toBeGreaterThan(40);
  expect(numbers.every((number) => bank.executed().get(number) === 1)).toBe(true);
  const posted = await fates(ledger.db);
  expect(posted).toHaveLength(200 + [...last.values()].filter((status) => status === 'returned').length);
});
