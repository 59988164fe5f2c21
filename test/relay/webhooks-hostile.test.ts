import { expect, test } from 'vitest';
import { checkWebhooks } from '../../src/ops/doctor-money.ts';
import { showEffect } from '../../src/ops/outbox.ts';
import { typed } from '../app/command-line.ts';
import { fates, useTestLedger } from '../support/ledger-rows.ts';
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
