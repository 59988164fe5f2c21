import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import type { StatedSettings } from '../../src/gateway/simulator/settings.ts';
import type { Simulator } from '../../src/gateway/simulator/simulator.ts';
import type { RelayEvent } from '../../src/relay/events.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { fates, insertEffect, insertEffects, testRegistry, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { age, deliverAll, deliveriesOf, FAST, gatewayTo, rowOf, servicesOf } from './harness.ts';

const ledger = useTestLedger();
const bank = useTestBank();
const gateways: Gateway[] = [];
let key: string;

beforeEach(async () => {
  key = await ledger.freshKey();
  await ledger.db.query('truncate public.fate');
});
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
});

async function against(settings: StatedSettings, options: Parameters<typeof gatewayTo>[1] = {}) {
  const simulator: Simulator = await bank.start(settings);
  const gateway = gatewayTo(simulator.url, options);
  gateways.push(gateway);
  return { simulator, services: servicesOf(ledger, gateway) };
}

const once = (numbers: readonly string[]) => new Map(numbers.map((number) => [number, 1]));
const paid = (numbers: readonly string[]) => numbers.map((number) => `${number} succeeded`).sort();

test('every pending effect of a delivering key is sent once, posted, and the key stops delivering', async () => {
  const numbers = (await insertEffects(ledger.db, key, 40)).sort();
  const { services } = await against({});
  const events: RelayEvent[] = [];
  const counts = await relayOnce(services, { ...FAST, onEvent: (event) => events.push(event) });
  expect(counts).toMatchObject({ taken: 40, sent: 40, looked_up: 0, succeeded: 40, cleared: 1 });
  expect(bank.executed()).toEqual(once(numbers));
  expect(await fates(ledger.db)).toEqual(paid(numbers));
  expect(events.at(-1)).toEqual({ kind: 'cleared', key });
  expect(await relayOnce(services, FAST)).toMatchObject({ taken: 0 });
});

test('a batch is bounded, and the next take goes on', async () => {
  await insertEffects(ledger.db, key, 25);
  const { services } = await against({});
  expect(await relayOnce(services, { ...FAST, batch: 10 })).toMatchObject({ taken: 10, cleared: 0 });
  expect(await deliverAll(services, key, { ...FAST, batch: 10 })).toEqual({ succeeded: 25 });
});

describe('an unknown outcome', () => {
  test('of every fifth answer dropped after acting is seen, looked up, and never paid twice', async () => {
    const numbers = (await insertEffects(ledger.db, key, 50)).sort();
    const { services } = await against({ every: [{ mode: 'drop_after', n: 5 }] });
    const first = await relayOnce(services, FAST);
    expect(first).toMatchObject({ sent: 50, succeeded: 40, unknown: 10 });
    expect(await deliverAll(services, key)).toEqual({ succeeded: 50 });
    expect(bank.executed()).toEqual(once(numbers));
    const { rows } = await ledger.db.query(
      `select d.step, d.outcome, count(*)::int4 as n from onceper.delivery d join onceper.outbox o using (number)
        where o.key = $1 group by 1, 2 order by 1, 2`,
      [key],
    );
    expect(rows).toEqual([
      { step: 'look_up', outcome: 'found', n: 10 },
      { step: 'send', outcome: 'accepted', n: 40 },
      { step: 'send', outcome: 'unknown', n: 10 },
    ]);
  });

  test('without a transfer is sent again only after a look-up, with the same number and the same bytes', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { services } = await against({ numbers: { [number]: ['error_before', 'drop_before', 'ok'] } });
    expect(await deliverAll(services, key)).toEqual({ succeeded: 1 });
    expect(await deliveriesOf(ledger, number)).toEqual([
      'send unknown internal',
      'look_up not_found',
      expect.stringMatching(/^send unknown /),
      'look_up not_found',
      'send accepted',
    ]);
    const hashes = await ledger.db.query(
      `select distinct request_hash from onceper.delivery where number = $1 and step = 'send'`,
      [number],
    );
    expect(hashes.rowCount).toBe(1);
    expect(await rowOf(ledger, number)).toMatchObject({ attempts: 3 });
  });

  test('of a 500 after acting is resolved by look-up alone', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { services } = await against({ numbers: { [number]: ['error_after'] } });
    expect(await deliverAll(services, key)).toEqual({ succeeded: 1 });
    expect(await deliveriesOf(ledger, number)).toEqual(['send unknown internal', 'look_up found']);
  });

  test('of a slow counterparty that acts after we gave up ends as one transfer', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { services } = await against({ numbers: { [number]: ['slow', 'ok'] }, delayMs: 400 }, { timeoutMs: 150 });
    expect(await deliverAll(services, key)).toEqual({ succeeded: 1 });
    expect(bank.executed()).toEqual(once([number]));
  });

  test('stays unknown while the counterparty’s look-up lags, and nothing is sent meanwhile', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { simulator, services } = await against(
      { numbers: { [number]: ['drop_after'] }, lookUpLagMs: 3_600_000, forgetAfterMs: 0 },
      { visibilityDelayMs: 7_200_000 },
    );
    await relayOnce(services, FAST);
    await age(ledger, key, 0);
    expect(await relayOnce(services, FAST)).toMatchObject({ looked_up: 1, sent: 0, unknown: 1 });
    const row = await rowOf(ledger, number);
    expect(row).toMatchObject({ state: 'unknown', code: 'not_visible_yet', attempts: 1 });
    expect(row.waitMs).toBeGreaterThan(7_000_000);
    await fetch(`${simulator.url}/control/modes`, { method: 'PUT', body: '{}' });
    await age(ledger, key, 0);
    expect(await relayOnce(services, FAST)).toMatchObject({ looked_up: 1, sent: 0, succeeded: 1 });
    expect(bank.executed()).toEqual(once([number]));
  });

  test('older than the key window is found, or put before a person, and never sent again', async () => {
    const kept = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const gone = await insertEffect(ledger.db, { key, subject: 'm-2' });
    const { services } = await against({
      numbers: { [kept]: ['drop_after'], [gone]: ['drop_before'] },
      forgetAfterMs: 0,
    });
    await relayOnce(services, FAST);
    await age(ledger, key, 24);
    expect(await relayOnce(services, FAST)).toMatchObject({ looked_up: 2, sent: 0, succeeded: 1, needs_attention: 1 });
    expect(await rowOf(ledger, gone)).toMatchObject({
      state: 'needs_attention',
      code: 'key_window_passed',
      attempts: 1,
    });
    expect(bank.executed()).toEqual(once([kept]));
  });

  test('that another relay took over during the look-up is not sent again by this one', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { services } = await against({ numbers: { [number]: ['drop_before', 'ok'] } });
    await relayOnce(services, FAST);
    await age(ledger, key, 0);
    const gateway: Gateway = {
      ...services.gateway,
      async lookUp(asked, signal) {
        await ledger.db.query('update onceper.outbox set fence = fence + 1 where number = $1', [asked]);
        return services.gateway.lookUp(asked, signal);
      },
    };
    expect(await relayOnce({ ...services, gateway }, FAST)).toMatchObject({ looked_up: 1, sent: 0, lost: 1 });
    expect(bank.executed()).toEqual(once([]));
  });

  test('is not resolved by a look-up that fails', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { services } = await against({ numbers: { [number]: ['drop_after'] }, lookUpErrors: 100 });
    await relayOnce(services, FAST);
    const budget = { lookUps: 2 };
    await age(ledger, key, 0);
    expect(await relayOnce(services, { ...FAST, budget })).toMatchObject({ looked_up: 1, unknown: 1 });
    await age(ledger, key, 0);
    expect(await relayOnce(services, { ...FAST, budget })).toMatchObject({ needs_attention: 1, sent: 0 });
  });
});

describe('an answer', () => {
  test('of 4xx on a first send fails that effect, and the others go on', async () => {
    const numbers = (await insertEffects(ledger.db, key, 10)).sort();
    const [refused = '', ...others] = numbers;
    const { services } = await against({ numbers: { [refused]: ['refused'] } });
    expect(await relayOnce(services, FAST)).toMatchObject({ failed: 1, succeeded: 9 });
    expect(await rowOf(ledger, refused)).toMatchObject({ state: 'failed', code: 'account_closed' });
    expect(await fates(ledger.db)).toEqual([`${refused} failed`, ...paid(others)].sort());
  });

  test('of 4xx after an unknown proves nothing: the transfer is found', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { services } = await against({ numbers: { [number]: ['drop_before', 'refused', 'ok'] } });
    expect(await deliverAll(services, key)).toEqual({ succeeded: 1 });
    expect(await deliveriesOf(ledger, number)).toContain('send refused account_closed');
    expect(bank.executed()).toEqual(once([number]));
  });

  test('of 409 is waited out', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { services } = await against({ numbers: { [number]: ['in_flight', 'ok'] } });
    expect(await deliverAll(services, key)).toEqual({ succeeded: 1 });
    expect(bank.executed()).toEqual(once([number]));
  });

  test('of 429 leaves the effect pending for as long as Retry-After says', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { services } = await against({ numbers: { [number]: ['busy', 'ok'] }, retryAfterSeconds: 600 });
    expect(await relayOnce(services, FAST)).toMatchObject({ pending: 1 });
    const row = await rowOf(ledger, number);
    expect(row).toMatchObject({ state: 'pending', code: 'busy', attempts: 1 });
    expect(row.waitMs).toBeGreaterThan(590_000);
    await age(ledger, key, 0);
    expect(await relayOnce(services, FAST)).toMatchObject({ sent: 1, looked_up: 0, succeeded: 1 });
  });

  test('of 422, to another body under a number, stops for a person', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { simulator, services } = await against({});
    const other = gatewayTo(simulator.url);
    gateways.push(other);
    await other.send(number, `{"amount":"9","currency":"GBP","destination":"m-1","reference":"${number}"}`);
    expect(await relayOnce(services, FAST)).toMatchObject({ needs_attention: 1 });
    expect(await rowOf(ledger, number)).toMatchObject({ state: 'needs_attention', code: 'key_reused' });
  });

  test('of 202 is neither paid nor failed until a look-up says so', async () => {
    const numbers = await insertEffects(ledger.db, key, 2);
    const [good = '', bad = ''] = numbers;
    const { simulator, services } = await against({ mix: [{ mode: 'pending', percent: 100 }] });
    expect(await relayOnce(services, FAST)).toMatchObject({ pending_external: 2, cleared: 0 });
    expect(await fates(ledger.db)).toEqual([]);
    const settle = (number: string, status: string) =>
      fetch(`${simulator.url}/control/settle`, { method: 'POST', body: JSON.stringify({ number, status }) });
    await settle(good, 'succeeded');
    await settle(bad, 'failed');
    expect(await deliverAll(services, key)).toEqual({ failed: 1, succeeded: 1 });
    expect(await fates(ledger.db)).toEqual([`${good} succeeded`, `${bad} failed`].sort());
  });

  test('that was lost about a transfer returned meanwhile posts both', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { simulator, services } = await against({ numbers: { [number]: ['drop_after'] } });
    await relayOnce(services, FAST);
    await fetch(`${simulator.url}/control/settle`, {
      method: 'POST',
      body: JSON.stringify({ number, status: 'returned' }),
    });
    expect(await deliverAll(services, key)).toEqual({ returned: 1 });
    expect(await fates(ledger.db)).toEqual([`${number} returned`, `${number} succeeded`]);
  });

  test('from nowhere, because the counterparty is down, leaves effects pending and unsent', async () => {
    await insertEffects(ledger.db, key, 3);
    const { simulator, services } = await against({});
    await simulator.stop();
    expect(await relayOnce(services, FAST)).toMatchObject({ pending: 3, unknown: 0 });
    expect(await effectCounts(ledger.db, key)).toEqual({ pending: 3 });
  });
});

describe('a row that can never succeed', () => {
  test('is dead before a byte is sent when its body is no transfer', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1', body: '{"amount":12}' });
    const { services } = await against({});
    expect(await relayOnce(services, FAST)).toMatchObject({ dead: 1, sent: 0, cleared: 1 });
    expect(await rowOf(ledger, number)).toMatchObject({ state: 'dead', code: 'malformed_body', attempts: 1 });
  });

  test('does not hold up good ones: 200 poison rows, then 10 good within two cycles', async () => {
    const numbers = await insertEffects(ledger.db, key, 200);
    const { services } = await against({
      numbers: Object.fromEntries(numbers.map((number) => [number, ['error_before']])),
    });
    const good = await Promise.all(
      Array.from({ length: 10 }, (_, at) => insertEffect(ledger.db, { key, subject: `n-${at}` })),
    );
    const slow = { ...FAST, backOff: { baseMs: 60_000, capMs: 60_000 } };
    await relayOnce(services, slow);
    await relayOnce(services, slow);
    for (const number of good) expect(await rowOf(ledger, number)).toMatchObject({ state: 'succeeded' });
  });

  test('ends before a person when its budget is spent and something may have been sent', async () => {
    const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
    const { services } = await against({ numbers: { [number]: ['error_before'] } });
    const budget = { tries: 3, timeMs: 0 };
    expect(await deliverAll(services, key, { ...FAST, budget })).toEqual({ needs_attention: 1 });
    expect(await rowOf(ledger, number)).toMatchObject({ attempts: 3, code: 'exhausted' });
  });

  test('of the job’s posting is recorded alone, later, and never stops the others', async () => {
    const numbers = (await insertEffects(ledger.db, key, 20)).sort();
    const bad = numbers[7] ?? '';
    const { services } = await against({});
    let failures = 0;
    const jobs = testRegistry((settled) => {
      if (!settled.includes(bad) || failures >= 6) return;
      failures += 1;
      throw new Error('this posting fails');
    });
    const counts = await relayOnce({ ...services, jobs }, FAST);
    expect(counts).toMatchObject({ succeeded: 19, record_failed: 1 });
    failures = 6;
    await age(ledger, key, 0);
    expect(await deliverAll({ ...services, jobs }, key)).toEqual({ succeeded: 20 });
    expect(bank.executed()).toEqual(once(numbers));
    expect(await fates(ledger.db)).toEqual(paid(numbers));
  });
});
