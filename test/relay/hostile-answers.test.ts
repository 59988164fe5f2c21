import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import type { RelayEvent } from '../../src/relay/events.ts';
import { useTestCounterparties } from '../support/counterparty.ts';
import { forced } from '../support/forced.ts';
import { fates, insertEffect, useTestLedger } from '../support/ledger-rows.ts';
import { deliverAll, FAST, gatewayTo, rowOf, servicesOf } from './harness.ts';

const ledger = useTestLedger();
const counterparty = useTestCounterparties();
const gateways: Gateway[] = [];
let key: string;
let number: string;

beforeEach(async () => {
  await ledger.db.query('truncate public.fate');
  key = await ledger.freshKey();
  number = await insertEffect(ledger.db, { key, subject: 'm-1' });
});
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
});

/** Delivers the payout of 12.50 GBP to a counterparty that states `transfer` in each answer. */
async function against(transfer: string) {
  const { url } = await counterparty({ send: transfer, lookUp: `{"data":[${transfer}]}` });
  const gateway = gatewayTo(url);
  gateways.push(gateway);
  const events: RelayEvent[] = [];
  const options = { ...FAST, budget: { lookUps: 3 }, onEvent: (event: RelayEvent) => void events.push(event) };
  await deliverAll(servicesOf(ledger, gateway), key, options);
  const faults = events.filter(({ kind }) => kind === 'fault' || kind === 'record_failed');
  const { state, code, counterpartyId } = await rowOf(ledger, number);
  return { ended: `${state} ${code ?? ''}`.trim(), counterpartyId, faults, fates: await fates(ledger.db) };
}

/** A transfer as text, so that a number may be written as no JavaScript number is; null leaves a part out. */
function stated(changes: Readonly<Record<string, string | null>>): string {
  const parts = { id: '"tr_1"', status: '"succeeded"', amount: '"1250"', currency: '"GBP"', destination: '"m-1"' };
  const all = { ...parts, reference: JSON.stringify(number), ...changes };
  return `{${Object.entries(all).flatMap(([name, text]) => (text === null ? [] : [`"${name}":${text}`]))}}`;
}

describe('a payout ends before a person, is posted never, and fails at no record, when each answer states', () => {
  test.each([
    ['another amount', { amount: '"1251"' }, 'needs_attention found_different'],
    ['a part that was returned', { amount: '"1"', status: '"returned"' }, 'needs_attention returned_in_part'],
    ['another currency', { currency: '"EUR"' }, 'needs_attention found_different'],
    ['another destination', { destination: '"m-2"' }, 'needs_attention found_different'],
    ['a status that nobody knows', { status: '"parked"' }, 'needs_attention unknown_status'],
    ['no currency of three capitals', { currency: '"gbp"' }, 'needs_attention exhausted'],
    ['no currency', { currency: null }, 'needs_attention exhausted'],
    ['an amount as a number', { amount: '1250' }, 'needs_attention exhausted'],
    ['a fraction', { amount: '"12.50"' }, 'needs_attention exhausted'],
    ['a fraction as a number', { amount: '12.50' }, 'needs_attention exhausted'],
    ['a negative amount', { amount: '"-1250"' }, 'needs_attention exhausted'],
    ['an amount with an exponent', { amount: '"125e1"' }, 'needs_attention exhausted'],
    ['an amount with zeros before it', { amount: '"01250"' }, 'needs_attention exhausted'],
    ['an amount of 60,000 digits', { amount: `"${'9'.repeat(60_000)}"` }, 'needs_attention exhausted'],
    ['no amount', { amount: null }, 'needs_attention exhausted'],
    ['no reference', { reference: null }, 'needs_attention exhausted'],
    ['no id', { id: null }, 'needs_attention exhausted'],
    ['an id that is a fraction', { id: '1.5' }, 'needs_attention exhausted'],
    ['a NUL in its id', { id: '"tr_\\u0000"' }, 'needs_attention exhausted'],
    ['60,000 characters in its id', { id: `"${'x'.repeat(60_000)}"` }, 'needs_attention exhausted'],
    ['a NUL in its status', { status: '"succeeded\\u0000"' }, 'needs_attention exhausted'],
    ['60,000 characters in its status', { status: `"${'x'.repeat(60_000)}"` }, 'needs_attention exhausted'],
    ['an escape sequence in its destination', { destination: '"m-1\\u001b[2J"' }, 'needs_attention exhausted'],
  ] as const)('%s', async (_, changes, ended) => {
    expect(await against(stated(changes))).toMatchObject({ ended, faults: [], fates: [] });
  });
});

test('a reference that is not ours is for a person in a send’s answer, and proves nothing in a look-up', async () => {
  const other = JSON.stringify(`${key}:m-9:GBP:payout`);
  const found = await against(stated({ reference: other }));
  expect(found).toMatchObject({ ended: 'needs_attention found_different', faults: [], fates: [] });
});

test('another transfer than the one that it was accepted as is for a person, and the recorded id stays', async () => {
  await forced(
    ledger.db,
    `update onceper.outbox
        set state = 'pending_external', attempts = 1, counterparty_id = 'tr_0',
            first_sent_at = clock_timestamp(), last_sent_at = clock_timestamp()
      where number = $1`,
    [number],
  );
  expect(await against(stated({}))).toEqual({
    ended: 'needs_attention found_twice',
    counterpartyId: 'tr_0',
    faults: [],
    fates: [],
  });
});

test('an id that is a number is kept digit by digit, and the payout has its fate', async () => {
  expect(await against(stated({ id: '9007199254740993' }))).toMatchObject({
    ended: 'succeeded',
    counterpartyId: '9007199254740993',
    faults: [],
    fates: [`${number} succeeded`],
  });
});
