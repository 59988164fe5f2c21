import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import type { StatedSettings } from '../../src/gateway/simulator/settings.ts';
import { createWebhookSigner } from '../../src/gateway/webhook-signature.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import type { WebhookEvent } from '../../src/relay/webhooks/apply.ts';
import { startWebhookServer, type WebhookRefused, type WebhookServer } from '../../src/relay/webhooks/server.ts';
import { openDatabase, transaction } from '../../src/store/database.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { recordOutcomes } from '../../src/store/outbox-record.ts';
import { storeWebhook } from '../../src/store/webhooks.ts';
import { fates, insertEffect, insertEffects, take, testRegistry, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { FAST, gatewayTo, rowOf, servicesOf } from './harness.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const signer = createWebhookSigner(SECRET);
const ledger = useTestLedger(12);
const bank = useTestBank();
const gateways: Gateway[] = [];
const servers: WebhookServer[] = [];
let events: (WebhookEvent | WebhookRefused)[];
let key: string;
let endpoint: WebhookServer;

async function receiving(jobs = testRegistry()): Promise<WebhookServer> {
  const onEvent = (event: WebhookEvent | WebhookRefused) => events.push(event);
  const server = await startWebhookServer({ db: ledger.db, jobs }, { port: 0, signer, onEvent });
  servers.push(server);
  return server;
}

beforeEach(async () => {
  key = await ledger.freshKey();
  await ledger.db.query('truncate public.fate');
  events = [];
  endpoint = await receiving();
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
  for (const gateway of gateways.splice(0)) await gateway.close();
});

async function against(settings: StatedSettings) {
  const simulator = await bank.start(settings);
  const gateway = gatewayTo(simulator.url);
  gateways.push(gateway);
  return { simulator, services: servicesOf(ledger, gateway) };
}

let messages = 0;
const nextId = () => `msg_${key}_${(messages += 1)}`;

function bodyOf(number: string, status: string, changes: object = {}): string {
  const data = {
    id: 'tr_1',
    status,
    amount: '1250',
    currency: 'GBP',
    destination: 'm-1',
    reference: number,
    ...changes,
  };
  return JSON.stringify({ type: `transfer.${status}`, data });
}

/** Posts a message as the counterparty does; returns the answer's status. */
async function post(body: string, id = nextId(), at = new Date(), headers: Record<string, string> = {}) {
  const signed = { ...signer.sign(id, at, body), 'content-type': 'application/json', ...headers };
  return (await fetch(endpoint.url, { method: 'POST', body, headers: signed })).status;
}

async function webhookStates(): Promise<string[]> {
  await endpoint.settled();
  const { rows } = await ledger.db.query<{ line: string }>(
    `select concat_ws(' ', type, state, code) as line from onceper.webhook where id like $1 order by received_at`,
    [`msg_${key}_%`],
  );
  return rows.map((row) => row.line);
}

/** An effect that was sent and whose fate is `state`, as a relay has left it. */
async function sentEffect(state = 'pending_external'): Promise<string> {
  const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
  await ledger.db.query(
    `update onceper.outbox
        set state = $2, attempts = 1, fence = 2, first_sent_at = clock_timestamp(), last_sent_at = clock_timestamp(),
            counterparty_id = case when $2 in ('pending_external', 'succeeded') then 'tr_1' end,
            due_at = clock_timestamp() + interval '1 hour'
      where number = $1`,
    [number, state],
  );
  return number;
}

test('a message is stored before it is answered, applied once, and posts the fate in the same transaction', async () => {
  const number = await sentEffect();
  expect(await post(bodyOf(number, 'succeeded'))).toBe(204);
  expect(await webhookStates()).toEqual(['transfer.succeeded applied']);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'succeeded', counterpartyId: 'tr_1' });
  expect(await fates(ledger.db)).toEqual([`${number} succeeded`]);
});

test('twice, and three at once, is once', async () => {
  const number = await sentEffect();
  const id = nextId();
  const answers = await Promise.all([1, 2, 3].map(() => post(bodyOf(number, 'succeeded'), id)));
  answers.push(await post(bodyOf(number, 'succeeded'), id), await post(bodyOf(number, 'succeeded')));
  expect(answers).toEqual([204, 204, 204, 204, 204]);
  expect(await webhookStates()).toEqual(['transfer.succeeded applied', 'transfer.succeeded stale']);
  expect(await fates(ledger.db)).toEqual([`${number} succeeded`]);
});

test('returned before succeeded is returned, with both postings, and the late one changes nothing', async () => {
  const number = await sentEffect();
  await post(bodyOf(number, 'returned'));
  await endpoint.settled();
  await post(bodyOf(number, 'succeeded'));
  await post(bodyOf(number, 'pending'));
  expect(await webhookStates()).toEqual([
    'transfer.returned applied',
    'transfer.succeeded stale',
    'transfer.pending stale',
  ]);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'returned' });
  expect(await fates(ledger.db)).toEqual([`${number} returned`, `${number} succeeded`]);
});

describe('refused without a trace', () => {
  test.each([
    ['forged', () => post(bodyOf('n', 'succeeded'), nextId(), new Date(), { 'webhook-signature': 'v1,AAAA' }), 401],
    ['unsigned', () => fetch(endpoint.url, { method: 'POST', body: '{}' }).then((answer) => answer.status), 401],
    [
      'replayed after five minutes',
      () => post(bodyOf('n', 'succeeded'), nextId(), new Date(Date.now() - 301_000)),
      401,
    ],
    ['no message', () => post('[]'), 400],
    ['too long', () => post(JSON.stringify({ type: 'x'.repeat(300_000), data: {} })), 413],
    ['elsewhere', () => fetch(endpoint.url.replace('/webhooks', '/'), { method: 'POST' }).then((a) => a.status), 404],
  ] as const)('%s', async (_, send, status) => {
    expect(await send()).toBe(status);
    expect(await webhookStates()).toEqual([]);
    expect(events).toMatchObject([{ kind: 'refused', status }]);
  });
});

test('what nobody here knows is kept and put before a person, and the next message is served', async () => {
  const number = await sentEffect();
  await post(bodyOf(`${key}:m-9:GBP:payout`, 'succeeded'));
  await post(JSON.stringify({ type: 'transfer.succeeded', data: { reference: number } }));
  await post(JSON.stringify({ type: 'account.updated', data: { anything: true } }));
  await post(bodyOf(number, 'succeeded'));
  expect((await webhookStates()).sort()).toEqual([
    'account.updated ignored other_type',
    'transfer.succeeded applied',
    'transfer.succeeded attention malformed_transfer',
    'transfer.succeeded attention unknown_number',
  ]);
});

test('an unknown status and another amount put the effect before a person', async () => {
  const number = await sentEffect();
  await post(bodyOf(number, 'frozen'));
  expect(await webhookStates()).toEqual(['transfer.frozen applied unknown_status']);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'needs_attention', code: 'unknown_status' });
  await ledger.db.query(`update onceper.outbox set state = 'unknown', code = null where number = $1`, [number]);
  await post(bodyOf(number, 'succeeded', { amount: '1251' }));
  await endpoint.settled();
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'needs_attention', code: 'found_different' });
  expect(await fates(ledger.db)).toEqual([]);
});

test('a relay in flight loses its fence to the webhook and records nothing over it', async () => {
  const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
  const [taken] = await take(ledger.db, 1);
  if (taken === undefined) throw new Error('nothing was taken');
  await post(bodyOf(number, 'failed'));
  await endpoint.settled();
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
  await post(bodyOf(number, 'succeeded'));
  expect(await webhookStates()).toEqual(['transfer.succeeded applied told_by_webhook']);
  expect(await relayOnce(services, FAST)).toMatchObject({ looked_up: 1, sent: 0, succeeded: 1 });
  expect(bank.executed().get(number)).toBe(1);
});

test('a message that was stored by a process that died is applied by the next one', async () => {
  const number = await sentEffect();
  await storeWebhook(ledger.db, {
    id: nextId(),
    type: 'transfer.succeeded',
    number,
    body: bodyOf(number, 'succeeded'),
  });
  await receiving();
  await waitFor(async () => (await rowOf(ledger, number)).state === 'succeeded', { what: 'the sweep' });
});

test('a posting that fails leaves effect and message as they were, and the message is tried again', async () => {
  const number = await sentEffect();
  let isBroken = true;
  await endpoint.stop();
  endpoint = await receiving(testRegistry(() => (isBroken ? Promise.reject(new Error('no table')) : undefined)));
  expect(await post(bodyOf(number, 'succeeded'))).toBe(204);
  expect(await webhookStates()).toEqual(['transfer.succeeded stored unexpected']);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'pending_external' });
  isBroken = false;
  await waitFor(async () => (await rowOf(ledger, number)).state === 'succeeded', { what: 'the next try' });
  expect(await fates(ledger.db)).toEqual([`${number} succeeded`]);
});

test('a message that can not be stored is answered 503, so that its sender tries again', async () => {
  const away = openDatabase({ url: 'postgres://nobody@127.0.0.1:1/none', name: 'away', max: 1 });
  endpoint = await startWebhookServer({ db: away, jobs: testRegistry() }, { port: 0, signer });
  servers.push(endpoint);
  expect(await post(bodyOf('n', 'succeeded'))).toBe(503);
  await endpoint.stop();
  servers.pop();
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
    webhooks: { url: endpoint.url, secret: SECRET, copies: 3, spreadMs: 300 },
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
      await endpoint.settled();
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
