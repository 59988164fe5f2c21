import { describe, expect, test } from 'vitest';
import { checkWebhooks } from '../../src/ops/doctor-money.ts';
import { resolveEffect, showEffect } from '../../src/ops/outbox.ts';
import { transaction } from '../../src/store/database.ts';
import { typed } from '../app/command-line.ts';
import { fates, testRegistry, useTestLedger } from '../support/ledger-rows.ts';
import { rowOf } from './harness.ts';
import { messageOf, sentEffect, useTestEndpoint } from './webhook-endpoint.ts';

const ledger = useTestLedger();
const endpoint = useTestEndpoint(ledger);

test('a return of another amount posts nothing, and outbox show, outbox list and doctor say what differs', async () => {
  const number = await sentEffect(ledger, endpoint.key, 'succeeded');
  await endpoint.post(messageOf(number, 'returned', { amount: '1' }));
  expect(await endpoint.states()).toEqual(['transfer.returned attention returned_in_part']);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'succeeded', code: null });
  expect(await fates(ledger.db)).toEqual([]);
  const detail = 'amount 1 where 1250 was to be sent';
  expect((await showEffect(ledger.db, number)).webhooks).toMatchObject([{ code: 'returned_in_part', detail }]);
  expect((await typed(['outbox', 'show', number], { DATABASE_URL: ledger.url })).out).toContain(detail);
  expect(await checkWebhooks(ledger.db)).toMatchObject({
    state: 'fail',
    detail: expect.stringContaining(`${number}: ${detail}`) as string,
  });
});

test('what a person has resolved since waits for nobody, and what comes afterwards waits again', async () => {
  const number = await sentEffect(ledger, endpoint.key, 'succeeded');
  await endpoint.post(messageOf(number, 'failed'));
  expect(await endpoint.states()).toEqual(['transfer.failed attention contradicts_succeeded']);
  expect(await checkWebhooks(ledger.db)).toMatchObject({ state: 'fail' });
  const told = { number, actor: 'user:ann', reason: 'bank letter', fate: 'returned', counterpartyId: null } as const;
  await transaction(ledger.db, {}, (tx) => resolveEffect(tx, testRegistry(), told));
  expect(await checkWebhooks(ledger.db)).toMatchObject({ state: 'ok' });
  await endpoint.post(messageOf(number, 'returned', { amount: '1' }));
  await endpoint.server.settled();
  expect(await checkWebhooks(ledger.db)).toMatchObject({ state: 'fail' });
});

test('a part of a payout on its way puts the payout before a person, and a later message does not decide it', async () => {
  const number = await sentEffect(ledger, endpoint.key);
  await endpoint.post(messageOf(number, 'returned', { amount: '1' }));
  await endpoint.server.settled();
  await endpoint.post(messageOf(number, 'returned'));
  expect(await endpoint.states()).toEqual([
    'transfer.returned applied returned_in_part',
    'transfer.returned attention waits_for_a_person',
  ]);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'needs_attention', code: 'returned_in_part' });
  expect(await fates(ledger.db)).toEqual([]);
});

describe('a message is refused once with 400, and stored nowhere, when it holds', () => {
  const long = 'x'.repeat(60_000);
  test.each([
    ['a NUL in its type', JSON.stringify({ type: 'transfer.\0', data: {} })],
    ['60,000 characters in its type', JSON.stringify({ type: long, data: {} })],
    ['a NUL in its id', messageOf('n', 'succeeded', { id: 'tr_\0' })],
    ['60,000 characters in its id', messageOf('n', 'succeeded', { id: long })],
    ['a NUL in its reference', messageOf('n\0', 'succeeded')],
    ['60,000 characters in its reference', messageOf(long, 'succeeded')],
    ['a NUL in its status', messageOf('n', 'succeeded', { status: '\0' })],
    ['60,000 characters in its destination', messageOf('n', 'succeeded', { destination: long })],
  ])('%s', async (_, body) => {
    expect(await endpoint.post(body)).toBe(400);
    expect(await endpoint.states()).toEqual([]);
  });
});

describe('a message is kept once, posts nothing and waits for a person, when its transfer has', () => {
  test.each([
    ['an amount as a number', { amount: 1250 }, 'malformed_transfer'],
    ['a fraction', { amount: '12.50' }, 'malformed_transfer'],
    ['a negative amount', { amount: '-1250' }, 'malformed_transfer'],
    ['an amount of 60,000 digits', { amount: '9'.repeat(60_000) }, 'malformed_transfer'],
    ['no amount', { amount: undefined }, 'malformed_transfer'],
    ['a currency in small letters', { currency: 'gbp' }, 'malformed_transfer'],
    ['no currency', { currency: undefined }, 'malformed_transfer'],
    ['no reference', { reference: undefined }, 'malformed_transfer'],
    ['no id', { id: undefined }, 'malformed_transfer'],
    ['another currency', { currency: 'EUR' }, 'found_different'],
    ['another destination', { destination: 'm-2' }, 'found_different'],
    ['another id', { id: 'tr_2' }, 'found_twice'],
  ])('%s', async (_, changes, code) => {
    const number = await sentEffect(ledger, endpoint.key, 'succeeded');
    expect(await endpoint.post(messageOf(number, 'returned', changes))).toBe(204);
    expect(await endpoint.states()).toEqual([`transfer.returned attention ${code}`]);
    expect(await rowOf(ledger, number)).toMatchObject({ state: 'succeeded', counterpartyId: 'tr_1' });
    expect(await fates(ledger.db)).toEqual([]);
  });
});

test('an id of a message that is no plain text is refused once, and stored nowhere', async () => {
  const number = await sentEffect(ledger, endpoint.key);
  for (const id of [`msg_${'x'.repeat(300)}`, 'msg_\u0085']) {
    expect(await endpoint.post(messageOf(number, 'succeeded'), id)).toBe(401);
  }
  expect(await endpoint.states()).toEqual([]);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'pending_external' });
});

test('what else is in a message may hold anything, and is kept byte for byte', async () => {
  const number = await sentEffect(ledger, endpoint.key);
  const body = messageOf(number, 'succeeded', { note: 'a\0b\u001b', more: { amount: 12.5 } });
  expect(await endpoint.post(body)).toBe(204);
  expect(await endpoint.states()).toEqual(['transfer.succeeded applied']);
  const { rows } = await ledger.db.query('select body from onceper.webhook where number = $1', [number]);
  expect(rows).toEqual([{ body }]);
});

test('an id that is a number keeps its digits', async () => {
  const number = await sentEffect(ledger, endpoint.key, 'unknown');
  const body = messageOf(number, 'succeeded').replace('"tr_1"', '9007199254740993');
  expect(await endpoint.post(body)).toBe(204);
  expect(await endpoint.states()).toEqual(['transfer.succeeded applied']);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'succeeded', counterpartyId: '9007199254740993' });
});
