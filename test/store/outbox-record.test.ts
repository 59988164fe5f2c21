import { beforeEach, describe, expect, test } from 'vitest';
import type { Verdict } from '../../src/kernel/delivery.ts';
import { type Database, transaction } from '../../src/store/database.ts';
import { clearDelivering, keysWithoutWork } from '../../src/store/outbox-clear.ts';
import { effectCounts, effectPage, effectStandings } from '../../src/store/outbox-read.ts';
import { type EffectOutcome, recordOutcomes } from '../../src/store/outbox-record.ts';
import type { TakenEffect } from '../../src/store/outbox-take.ts';
import { forced } from '../support/forced.ts';
import { insertEffect, insertEffects, TEST_JOB, take as takeFrom, useTestLedger } from '../support/ledger-rows.ts';

const ledger = useTestLedger();
let db: Database;
let key: string;

beforeEach(async () => {
  db = ledger.db;
  key = await ledger.freshKey();
});

const take = (limit?: number, leaseMs?: number) => takeFrom(db, limit, leaseMs);
const nothingToSettle = () => Promise.reject(new Error('nothing here is final'));

function outcomeOf(effect: TakenEffect, verdict: Partial<Verdict> & Pick<Verdict, 'state'>): EffectOutcome {
  const { number, subject, fence, before } = effect;
  const held = before === 'pending' ? 'sending' : before === 'pending_external' ? before : 'unknown';
  return {
    number,
    key: effect.key,
    subject,
    fence,
    held,
    verdict: { kind: 'becomes', delayMs: 0, code: null, counterpartyId: null, ...verdict },
    tries: [],
  };
}

async function one(effects: Promise<TakenEffect[]>): Promise<TakenEffect> {
  const [effect, ...others] = await effects;
  expect(others).toEqual([]);
  if (effect === undefined) throw new Error('nothing was taken');
  return effect;
}

describe('record', () => {
  test('settles what it won in the same transaction, and nothing of what another took over', async () => {
    await insertEffects(db, key, 3);
    const [kept, failed, lost] = (await take()).sort((a, b) => a.subject.localeCompare(b.subject));
    if (kept === undefined || failed === undefined || lost === undefined) throw new Error('three were due');
    await db.query(`update onceper.outbox set fence = fence + 1 where number = $1`, [lost.number]);
    const settled: string[] = [];
    const won = await transaction(db, {}, (tx) =>
      recordOutcomes(
        tx,
        [
          outcomeOf(lost, { state: 'succeeded', counterpartyId: 'tr_3' }),
          outcomeOf(failed, { state: 'failed', code: 'account_closed' }),
          outcomeOf(kept, { state: 'succeeded', counterpartyId: 'tr_1' }),
        ],
        async (_tx, effects) => void settled.push(...effects.map((effect) => `${effect.subject} ${effect.state}`)),
      ),
    );
    expect([...won].sort()).toEqual([kept.number, failed.number].sort());
    expect(settled).toEqual(['m-1 succeeded', 'm-2 failed']);
    expect(await effectCounts(db, key)).toEqual({ failed: 1, sending: 1, succeeded: 1 });
  });

  test('changes nothing when the job can not post', async () => {
    await insertEffect(db, { key, subject: 'm-1' });
    const effect = await one(take());
    const outcome = outcomeOf(effect, { state: 'succeeded', counterpartyId: 'tr_1' });
    const recorded = transaction(db, {}, (tx) => recordOutcomes(tx, [outcome], nothingToSettle));
    await expect(recorded).rejects.toThrow('nothing here is final');
    expect(await effectCounts(db, key)).toEqual({ sending: 1 });
  });

  test('repeated after a lost answer to COMMIT, wins nothing and posts nothing again', async () => {
    await insertEffect(db, { key, subject: 'm-1' });
    const effect = await one(take());
    const outcome = outcomeOf(effect, { state: 'succeeded', counterpartyId: 'tr_1' });
    await recordOutcomes(db, [outcome], async () => undefined);
    expect(await recordOutcomes(db, [outcome], nothingToSettle)).toEqual(new Set());
    expect(await effectStandings(db, [effect.number])).toMatchObject([{ state: 'succeeded', counterpartyId: 'tr_1' }]);
  });

  test('brings a transfer that was returned before it was found through succeeded, with both postings', async () => {
    await insertEffect(db, { key, subject: 'm-1' });
    const effect = await one(take());
    const settled: string[] = [];
    await recordOutcomes(
      db,
      [outcomeOf(effect, { state: 'returned', counterpartyId: 'tr_1' })],
      async (_tx, effects) => {
        settled.push(...effects.map(({ state }) => state));
      },
    );
    expect(settled).toEqual(['succeeded', 'returned']);
    expect(await effectCounts(db, key)).toEqual({ returned: 1 });
  });

  test('is refused a success that names no transfer, by the table itself', async () => {
    await insertEffect(db, { key, subject: 'm-1' });
    const effect = await one(take());
    const recorded = recordOutcomes(db, [outcomeOf(effect, { state: 'succeeded' })], async () => undefined);
    await expect(recorded).rejects.toMatchObject({ code: 'constraint', at: 'outbox_succeeded_is_named' });
  });
});

describe('delivering', () => {
  test('is cleared only when no effect needs the relay; those that wait for a person do not', async () => {
    await insertEffects(db, key, 2);
    expect(await keysWithoutWork(db, [TEST_JOB])).toEqual([]);
    expect(await clearDelivering(db, key)).toBe(false);
    await forced(
      db,
      `update onceper.outbox set state = case subject when 'm-1' then 'dead' else 'needs_attention' end where key = $1`,
      [key],
    );
    expect(await keysWithoutWork(db, [TEST_JOB])).toEqual([key]);
    expect(await transaction(db, {}, (tx) => clearDelivering(tx, key))).toBe(true);
    expect(await keysWithoutWork(db, [TEST_JOB])).toEqual([]);
  });

  test('stays while somebody adds an effect with the action row locked', async () => {
    const added = await transaction(db, {}, async (tx) => {
      await tx.query(`update onceper.action set delivering = true where key = $1`, [key]);
      await insertEffect(tx, { key, subject: 'm-1' });
      return transaction(db, {}, (other) => clearDelivering(other, key));
    });
    expect(added).toBe(false);
    expect(await clearDelivering(db, key)).toBe(false);
    expect(await take()).toHaveLength(1);
  });
});

test('the effects of a key are not those of its adjustments', async () => {
  const adjustment = `${key}:adj-1`;
  await insertEffect(db, { key, subject: 'm-1' });
  await insertEffect(db, { key: adjustment, subject: 'm-1' });
  expect(await effectCounts(db, key)).toEqual({ pending: 1 });
  expect((await effectPage(db, adjustment, null, 9)).effects.map((effect) => effect.number)).toEqual([
    `${adjustment}:m-1:GBP:payout`,
  ]);
});

test('a page of effects shows money as text, in the order of the numbers, and null where the body is no transfer', async () => {
  await insertEffects(db, key, 3);
  await insertEffect(db, { key, subject: 'm-4', body: 'not json' });
  const first = await effectPage(db, key, null, 3);
  expect(first.effects.map((effect) => [effect.subject, effect.amount, effect.currency])).toEqual([
    ['m-1', '101', 'GBP'],
    ['m-2', '102', 'GBP'],
    ['m-3', '103', 'GBP'],
  ]);
  const last = await effectPage(db, key, first.next, 3);
  expect(last).toMatchObject({
    effects: [{ subject: 'm-4', amount: null, currency: null, state: 'pending', attempts: 0 }],
    next: null,
  });
});
