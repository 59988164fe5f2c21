import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import { minorAmount, stripeAmount } from '../../src/gateway/stripe/amount.ts';
import { createStripeGateway } from '../../src/gateway/stripe.ts';
import { type StripeFake, startStripeFake } from './stripe-fake.ts';

const TERMS = { keyWindowMs: 86_400_000, visibilityDelayMs: 0, timeoutMs: 2_000 };
const KEY = 'sk_test_secret';
const number = 'settlement:2026-09:m-1:GBP:payout';
const body = JSON.stringify({ amount: '1250', currency: 'GBP', destination: 'm-1', reference: number });
const accounts = new Map([['m-1', 'acct_1']]);

let fake: StripeFake;
let gateway: Gateway;

beforeEach(async () => {
  fake = await startStripeFake();
  gateway = createStripeGateway({
    ...TERMS,
    url: fake.url,
    key: KEY,
    accountOf: (destination) => accounts.get(destination) ?? null,
  });
});
afterEach(async () => {
  await gateway.close();
  await fake.stop();
});

describe('amounts', () => {
  test.each([
    ['GBP', '1250', 1250],
    ['JPY', '80', 80],
    ['KWD', '1230', 1230],
    ['ISK', '80', 8000],
    ['UGX', '80', 8000],
    ['MGA', '8000', 80],
    ['GBP', '0', 0],
    ['GBP', '9007199254740991', 9007199254740991],
  ])('of %s %s go as Stripe counts them and come back as they were', (currency, amount, stated) => {
    expect(stripeAmount(amount, currency)).toBe(stated);
    expect(minorAmount(stated, currency)).toBe(amount);
  });

  test.each([
    ['KWD', '1234', 'thousandths that are not in tens'],
    ['MGA', '8050', 'a fraction that Stripe does not keep'],
    ['GBP', '9007199254740992', 'more than a double holds'],
    ['CLF', '10000', 'a currency whose decimals Stripe does not state'],
    ['XXX', '100', 'no currency'],
  ])('of %s %s are not sent: %s', async (currency, amount) => {
    expect(stripeAmount(amount, currency)).toBeNull();
    const odd = JSON.stringify({ amount, currency, destination: 'm-1', reference: number });
    expect(await gateway.send(number, odd)).toEqual({ kind: 'unsent', code: 'stripe_amount' });
    expect(fake.posts).toEqual([]);
  });

  test.each([
    ['ISK', 8_050],
    ['GBP', 1.5],
    ['GBP', -1],
  ])('that Stripe states as %s %d are no amount of ours', (currency, stated) => {
    expect(minorAmount(stated, currency)).toBeNull();
  });
});

describe('a send', () => {
  test('carries the number as key and as transfer group, and the account for the destination', async () => {
    expect(await gateway.send(number, body)).toMatchObject({ kind: 'accepted', transfer: { destination: 'm-1' } });
    const [post] = fake.posts;
    expect(post?.key).toBe(number);
    expect(Object.fromEntries(new URLSearchParams(post?.body))).toEqual({
      amount: '1250',
      currency: 'gbp',
      destination: 'acct_1',
      transfer_group: number,
      'metadata[onceper_destination]': 'm-1',
    });
  });

  test('to a destination without an account is not sent', async () => {
    const other = body.replace('"m-1"', '"m-2"');
    expect(await gateway.send(number, other)).toEqual({ kind: 'unsent', code: 'stripe_no_account' });
    expect(fake.posts).toEqual([]);
  });

  test('that met a 500 meets it again from memory, and stays unknown', async () => {
    fake.treat(number, 'error_after');
    expect(await gateway.send(number, body)).toMatchObject({ kind: 'unknown', status: 500 });
    expect(await gateway.send(number, body)).toMatchObject({ kind: 'unknown', status: 500 });
    expect(fake.transfers).toHaveLength(1);
  });

  test('that met a reset is not repeated by the package, which repeats one by itself', async () => {
    fake.treat(number, 'drop_before');
    expect(await gateway.send(number, body)).toMatchObject({ kind: 'unknown', status: null });
    expect(fake.posts).toHaveLength(1);
  });

  test('reads Stripe’s code and never its text', async () => {
    fake.treat(number, 'refused');
    expect(await gateway.send(number, body)).toEqual({ kind: 'refused', code: 'account_closed', status: 400 });
  });

  test('that was short of balance is repeated from memory, and asked again under a key of its own for each repeat', async () => {
    fake.hasBalance = false;
    expect(await gateway.send(number, body)).toEqual({ kind: 'barred', code: 'balance_insufficient', status: 400 });
    fake.hasBalance = true;
    const old = { kind: 'repeated', code: 'balance_insufficient', status: 400 };
    expect(await gateway.send(number, body)).toEqual(old);
    expect(await gateway.send(number, body, undefined, 1)).toMatchObject({ kind: 'accepted' });
    expect(await gateway.send(number, body, undefined, 1)).toMatchObject({ kind: 'accepted' });
    expect(fake.transfers).toMatchObject([{ transfer_group: number }]);
  });

  test('waits as long as a rate limit asks', async () => {
    fake.treat(number, 'busy');
    expect(await gateway.send(number, body)).toEqual({ kind: 'busy', retryAfterMs: 2_000, status: 429 });
  });
});

describe('a look-up', () => {
  test('shows a reversed transfer as returned, and a partly reversed one as what a person must see', async () => {
    await gateway.send(number, body);
    const [made] = fake.transfers;
    if (made === undefined) throw new Error('nothing was made');
    made.amount_reversed = 50;
    expect(await gateway.lookUp(number)).toMatchObject({ transfers: [{ status: 'returned_in_part' }] });
    made.reversed = true;
    expect(await gateway.lookUp(number)).toMatchObject({ transfers: [{ status: 'returned_in_part' }] });
    made.amount_reversed = 1_250;
    expect(await gateway.lookUp(number)).toMatchObject({ transfers: [{ status: 'returned' }] });
  });

  test('names the account where our name of it leads elsewhere by now', async () => {
    await gateway.send(number, body);
    accounts.set('m-1', 'acct_2');
    expect(await gateway.lookUp(number)).toMatchObject({ transfers: [{ destination: 'acct_1' }] });
    accounts.set('m-1', 'acct_1');
  });
});

test('a list states a transfer that can’t be read under its number, so that it does not go missing', async () => {
  await gateway.send(number, body);
  const [made] = fake.transfers;
  if (made === undefined) throw new Error('nothing was made');
  made.currency = 'zzz';
  const now = Date.now();
  const range = { from: new Date(now - 60_000).toISOString(), to: new Date(now + 60_000).toISOString(), limit: 10 };
  expect((await gateway.list(range)).transfers).toMatchObject([{ status: 'unreadable', reference: number }]);
});

test('an address over plain http to elsewhere, or with a path, is refused; so is a key with spaces; neither is repeated', () => {
  for (const url of [
    'http://stripe.example',
    'https://a:secret@api.stripe.com',
    'https://api.stripe.com/v1',
    'secret',
  ]) {
    expect(() => createStripeGateway({ ...TERMS, url, key: KEY })).toThrow(
      expect.objectContaining({ code: 'gateway_url' }),
    );
    expect(() => createStripeGateway({ ...TERMS, url, key: KEY })).not.toThrow(/secret/);
  }
  expect(() => createStripeGateway({ ...TERMS, key: 'sk secret' })).toThrow(
    expect.objectContaining({ code: 'stripe_key' }),
  );
  expect(() => createStripeGateway({ ...TERMS, key: 'sk secret' })).not.toThrow(/secret/);
});
