import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import type { StatedSettings } from '../../src/gateway/simulator/settings.ts';
import { codeOf } from '../../src/kernel/error.ts';
import { listOutbox, resolveEffect, retryApproved, retryEffect, showEffect } from '../../src/ops/outbox.ts';
import { cleanOutbox } from '../../src/ops/outbox-clean.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import { transaction } from '../../src/store/database.ts';
import { lockCleaning } from '../../src/store/outbox-clean.ts';
import { clearDelivering } from '../../src/store/outbox-clear.ts';
import { documentOf, typed } from '../app/command-line.ts';
import { age, deliverAll, FAST, gatewayTo, rowOf, servicesOf } from '../relay/harness.ts';
import { forced } from '../support/forced.ts';
import { fates, insertEffect, insertEffects, testRegistry, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';

const ledger = useTestLedger(12);
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
  const simulator = await bank.start(settings);
  const gateway = gatewayTo(simulator.url, options);
  gateways.push(gateway);
  return { simulator, services: servicesOf(ledger, gateway) };
}

async function inState(state: string, counterpartyId: string | null = null): Promise<string> {
  const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
  await forced(
    ledger.db,
    `update onceper.outbox
        set state = $2, attempts = 1, fence = 4, first_sent_at = clock_timestamp(), last_sent_at = clock_timestamp(),
            counterparty_id = $3, lookups = 200, due_at = clock_timestamp() + interval '1 hour'
      where number = $1`,
    [number, state, counterpartyId],
  );
  return number;
}

const ask = (number: string) => ({ number, actor: 'os:ann', reason: 'bank letter of Monday' });
const resolve = (number: string, fate: 'succeeded' | 'failed' | 'returned', counterpartyId: string | null = null) =>
  transaction(ledger.db, {}, (tx) => resolveEffect(tx, testRegistry(), { ...ask(number), fate, counterpartyId }));
const refusal = (act: Promise<unknown>) => act.then(() => null, codeOf);

test('a retry keeps the number: what was lost to a person is looked up, and paid once', async () => {
  const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
  const { simulator, services } = await against({ mix: [{ mode: 'drop_after', percent: 100 }], lookUpErrors: 100 });
  await deliverAll(services, key, { ...FAST, budget: { lookUps: 2 } });
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'needs_attention', code: 'exhausted' });
  await fetch(`${simulator.url}/control/modes`, { method: 'PUT', body: '{}' });
  await ledger.db.query('update onceper.action set delivering = false where key = $1', [key]);
  expect(await retryEffect(ledger.db, ask(number))).toMatchObject({
    from: 'needs_attention',
    to: 'unknown',
    delivering: true,
  });
  await deliverAll(services, key);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'succeeded', attempts: 1 });
  expect([...bank.executed()]).toEqual([[number, 1]]);
  const { acts, deliveries } = await showEffect(ledger.db, number);
  expect(acts).toMatchObject([{ verb: 'retry', from: 'needs_attention', to: 'unknown', actor: 'os:ann' }]);
  expect(deliveries.length).toBeGreaterThan(2);
});

test('a dead effect is sent again under its number, and only with an approval', async () => {
  const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
  const { services } = await against({ numbers: { [number]: ['busy', 'ok'] }, retryAfterSeconds: 0 });
  await deliverAll(services, key, { ...FAST, budget: { tries: 1, timeMs: 0 } });
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'dead', code: 'busy' });
  expect(await refusal(retryEffect(ledger.db, ask(number)))).toBe('needs_approval');
  await transaction(ledger.db, {}, (tx) => retryApproved(tx, ask(number)));
  await deliverAll(services, key);
  expect(await rowOf(ledger, number)).toMatchObject({ state: 'succeeded', attempts: 2 });
  expect([...bank.executed()]).toEqual([[number, 1]]);
});

test('a retry that meets the clearing of its key leaves the key delivering', async () => {
  const number = await inState('needs_attention');
  const retried = await transaction(ledger.db, {}, async (tx) => {
    // The relay has looked and found nothing to do; the person's retry waits for its lock.
    expect(await clearDelivering(tx, key)).toBe(true);
    const waiting = [retryEffect(ledger.db, ask(number))];
    await waitFor(
      async () => {
        const { rowCount } = await ledger.db.query(
          `select from pg_stat_activity where application_name like '%outbox' and wait_event_type = 'Lock'`,
        );
        return rowCount > 0;
      },
      { what: 'the retry to wait' },
    );
    return waiting;
  });
  expect(await Promise.all(retried)).toMatchObject([{ to: 'unknown', delivering: true }]);
  const { rows } = await ledger.db.query('select delivering from onceper.action where key = $1', [key]);
  expect(rows).toEqual([{ delivering: true }]);
});

test('resolving by hand posts the fate once and is signed', async () => {
  const number = await inState('needs_attention');
  expect(await refusal(resolve(number, 'succeeded'))).toBe('counterparty_id_missing');
  expect(await resolve(number, 'succeeded', 'tr_7')).toMatchObject({
    from: 'needs_attention',
    to: 'succeeded',
    fence: 5n,
  });
  expect(await refusal(resolve(number, 'failed'))).toBe('nothing_to_resolve');
  expect(await resolve(number, 'returned')).toMatchObject({ from: 'succeeded', to: 'returned' });
  expect(await fates(ledger.db)).toEqual([`${number} returned`, `${number} succeeded`]);
  const { effect, acts } = await showEffect(ledger.db, number);
  expect(effect).toMatchObject({ state: 'returned', counterpartyId: 'tr_7', code: 'resolved_by_hand', fence: 6n });
  expect(acts.map(({ to, reason }) => `${to}: ${reason}`)).toEqual([
    'succeeded: bank letter of Monday',
    'returned: bank letter of Monday',
  ]);
});

test('what has a fate or is in hand can not be retried, and what does not exist is said to', async () => {
  const number = await inState('sending');
  expect(await refusal(retryEffect(ledger.db, ask(number)))).toBe('nothing_to_retry');
  expect(await refusal(resolve(number, 'failed'))).toBe('nothing_to_resolve');
  expect(await refusal(retryEffect(ledger.db, ask(`${key}:m-9:GBP:payout`)))).toBe('unknown_effect');
  expect(await refusal(retryEffect(ledger.db, ask(`${key}:m-1:GBP`)))).toBe('malformed_effect_number');
  expect((await showEffect(ledger.db, number)).acts).toEqual([]);
});

test('the list shows what waits for a person, a page at a time', async () => {
  await insertEffects(ledger.db, key, 3);
  await forced(ledger.db, `update onceper.outbox set state = 'dead' where key = $1`, [key]);
  const states = ['dead', 'needs_attention'] as const;
  const first = await listOutbox(ledger.db, { states, key, after: null, limit: 2 });
  expect(first.effects).toMatchObject([{ key, state: 'dead', currency: 'GBP', amount: '101' }, { key }]);
  const second = await listOutbox(ledger.db, { states, key, after: first.next, limit: 2 });
  expect([second.effects.length, second.next]).toEqual([1, null]);
});

test('the commands print one document, and sign with the actor', async () => {
  const number = await inState('needs_attention');
  const typing = (...line: string[]) => typed(['outbox', ...line], { DATABASE_URL: ledger.url });
  const retried = await typing('retry', number, '--reason', 'asked the bank', '--json');
  expect(documentOf(retried)).toMatchObject({ number, from: 'needs_attention', to: 'unknown', actor: 'user:tester' });
  const shown = documentOf<{ acts: unknown[] }>(await typing('show', number, '--json'));
  expect(shown.acts).toMatchObject([{ verb: 'retry', actor: 'user:tester', reason: 'asked the bank' }]);
  expect((await typing('show', number)).out).toContain('asked the bank');
  expect((await typing('list', '--state', 'unknown', '--key', key)).out).toContain(number);
  expect((await typing('retry', number, '--reason', ' ')).code).toBe(2);
  expect((await typing('resolve', number, '--as', 'lost', '--reason', 'x')).code).toBe(2);
  expect((await typing('show', `${key}:m-9:GBP:payout`)).code).toBe(2);
  expect((await typing('clean', '--older-than', '1h')).code).toBe(2);
});

test('cleaning takes old records of finished effects in batches, and never an effect', async () => {
  const [done, undone] = await insertEffects(ledger.db, key, 2);
  await ledger.db.query(
    `insert into onceper.delivery (number, fence, step, at, request_hash, outcome)
     select n, f, 'send', clock_timestamp() - interval '100 days', '-', 'accepted'
       from unnest($1::text[]) n, generate_series(1, 25) f`,
    [[done, undone]],
  );
  await forced(
    ledger.db,
    `update onceper.outbox set state = 'failed', final_at = clock_timestamp() - interval '95 days' where number = $1`,
    [done],
  );
  const days = 86_400_000;
  expect(await cleanOutbox(ledger.db, { olderMs: 96 * days, batch: 10 })).toMatchObject({ kind: 'done', deleted: 0 });
  const cleaned = await cleanOutbox(ledger.db, { olderMs: 90 * days, batch: 10 });
  expect(cleaned).toMatchObject({ kind: 'done', deleted: 25 });
  expect(cleaned.batches).toBeGreaterThanOrEqual(5);
  const { rows } = await ledger.db.query<{ number: string; left: number }>(
    `select number, (select count(*)::int4 from onceper.delivery d where d.number = o.number) as left
       from onceper.outbox o where key = $1 order by number`,
    [key],
  );
  expect(rows).toEqual([
    { number: done, left: 0 },
    { number: undone, left: 25 },
  ]);
  await transaction(ledger.db, {}, async (tx) => {
    expect(await lockCleaning(tx)).toBe(true);
    expect(await cleanOutbox(ledger.db, { olderMs: 90 * days })).toMatchObject({ kind: 'busy', deleted: 0 });
  });
});

test('a hand that does not clean on purpose deletes no record of a call', async () => {
  const number = await insertEffect(ledger.db, { key, subject: 'm-1' });
  const { services } = await against({});
  await relayOnce(services, FAST);
  await age(ledger, key, 24 * 365);
  const deleted = ledger.db.query('delete from onceper.delivery where number = $1', [number]);
  expect(await refusal(deleted)).toBe('constraint');
});
