import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freePort } from '../../src/embedded/ports.ts';
import {
  type Ability,
  type ConformanceHarness,
  casesFor,
  type Treatment,
} from '../../src/gateway/conformance/suite.ts';
import { createHttpGateway } from '../../src/gateway/http.ts';
import type { Gateway, Transfer } from '../../src/gateway/port.ts';
import type { Simulator } from '../../src/gateway/simulator/simulator.ts';
import { createStripeGateway } from '../../src/gateway/stripe.ts';
import { useTestBank } from '../support/simulator.ts';
import { findStripeMock, startStripeMock } from '../support/stripe-mock.ts';
import { type StripeFake, startStripeFake } from './stripe-fake.ts';

const TREATMENTS = [
  'drop_before',
  'drop_after',
  'cut',
  'in_flight',
  'error_before',
  'error_after',
  'busy',
  'refused',
  'barred',
] as const satisfies readonly Treatment[];
const EVERYTHING: readonly Ability[] = ['memory', 'clock', ...TREATMENTS];
const TERMS = { keyWindowMs: 86_400_000, visibilityDelayMs: 0, timeoutMs: 2_000 };
const SECRET = 'sk_test_4f0asecret';

/** A payout of a settlement to a destination that the counterparty knows. */
const transferTo =
  (destination: string) =>
  (changes: Partial<Transfer> = {}): Transfer => ({
    amount: '1250',
    currency: 'GBP',
    destination,
    reference: `settlement:2026-09:${randomUUID()}:GBP:payout`,
    ...changes,
  });

let closing: Gateway[] = [];
const kept = <T extends Gateway>(gateway: T): T => {
  closing.push(gateway);
  return gateway;
};
afterEach(async () => {
  for (const gateway of closing) await gateway.close();
  closing = [];
});
const nobody = async () => `http://127.0.0.1:${await freePort()}`;

describe('the http adapter against the simulator', () => {
  const bank = useTestBank();
  const { cases, left } = casesFor(EVERYTHING);

  test('shows every case', () => expect(left).toEqual([]));

  test.each(cases)('$name', async ({ run }) => {
    const simulator: Simulator = await bank.start({ retryAfterSeconds: 2 });
    const to = (url: string) => kept(createHttpGateway({ ...TERMS, url, token: () => SECRET }));
    const harness: ConformanceHarness = {
      gateway: to(simulator.url),
      unreachable: to(await nobody()),
      transfer: transferTo('m-1'),
      async treat(number, treatment) {
        const settings = {
          retryAfterSeconds: 2,
          numbers: { [number]: [treatment === 'barred' ? 'refused' : treatment, 'ok'] },
          ...(treatment === 'barred' ? { refusal: { status: 402, code: 'balance_insufficient' } } : {}),
        };
        const put = await fetch(`${simulator.url}/control/modes`, { method: 'PUT', body: JSON.stringify(settings) });
        expect(put.ok).toBe(true);
      },
      made: async (number) => bank.executed().get(number) ?? 0,
      requests: async (number) => bank.entries().filter((entry) => entry.number === number).length,
      secret: SECRET,
    };
    await run(harness);
  });
});

describe('the Stripe adapter against a server with Stripe’s memory', () => {
  let fake: StripeFake;
  const { cases, left } = casesFor(EVERYTHING);
  beforeEach(async () => {
    fake = await startStripeFake();
  });
  afterEach(() => fake.stop());

  test('shows every case', () => expect(left).toEqual([]));

  test.each(cases)('$name', async ({ run }) => {
    const accountOf = (destination: string) => (destination === 'm-1' ? 'acct_1' : null);
    const to = (url: string) => kept(createStripeGateway({ ...TERMS, url, key: SECRET, accountOf }));
    await run({
      gateway: to(fake.url),
      unreachable: to(await nobody()),
      transfer: transferTo('m-1'),
      treat: async (number, treatment) => fake.treat(number, treatment),
      made: async (number) => fake.transfers.filter((each) => each.transfer_group === number).length,
      requests: async (number) => fake.posts.filter(({ key }) => key === number).length,
      secret: SECRET,
    });
  });
});

const mock = findStripeMock();
const where = mock.path === null ? `stripe-mock, which is skipped: ${mock.why}` : 'stripe-mock';

/** stripe-mock checks parameters against Stripe's own description of its API; it remembers nothing and never misbehaves. */
describe.skipIf(mock.path === null)(`the Stripe adapter against ${where}`, () => {
  let server: Awaited<ReturnType<typeof startStripeMock>>;
  const { cases, left } = casesFor([]);
  beforeAll(async () => {
    server = await startStripeMock(mock.path ?? '');
  });
  afterAll(() => server.stop());

  const unasked = (): never => {
    throw new Error('stripe-mock has no books');
  };
  const to = (url: string) => kept(createStripeGateway({ ...TERMS, url, key: SECRET }));

  test('leaves out what takes a memory, and nothing else', () => {
    expect(left).toEqual(
      casesFor(EVERYTHING)
        .cases.filter(({ needs }) => needs.length > 0)
        .map(({ name }) => name),
    );
  });

  test.each(cases)('$name', async ({ run }) => {
    await run({
      gateway: to(server.url),
      unreachable: to(await nobody()),
      transfer: transferTo('acct_1'),
      treat: unasked,
      made: unasked,
      requests: unasked,
      secret: SECRET,
    });
  });

  test('asks for a list in the way that Stripe describes', async () => {
    const page = await to(server.url).list({ from: '2009-01-01T00:00:00Z', to: '2010-01-01T00:00:00Z', limit: 10 });
    expect(page.transfers).toHaveLength(1);
    expect(page.hasMore).toBe(false);
  });

  test('reads a refused key as an answer about us, without repeating the key', async () => {
    const wrong = kept(createStripeGateway({ ...TERMS, url: server.url, key: 'no-key-of-theirs' }));
    const { reference, ...rest } = transferTo('acct_1')();
    const answer = await wrong.send(reference, JSON.stringify({ ...rest, reference }));
    expect(answer).toMatchObject({ kind: 'barred', status: 401 });
    expect(JSON.stringify(answer)).not.toContain('no-key-of-theirs');
  });
});
