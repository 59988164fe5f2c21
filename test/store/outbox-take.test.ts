import { beforeEach, describe, expect, test } from 'vitest';
import { type Database, transaction } from '../../src/store/database.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { beginResend, releaseTaken, type TakenEffect } from '../../src/store/outbox-take.ts';
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
const endLeases = () => db.query(`update onceper.outbox set due_at = clock_timestamp() where key = $1`, [key]);

async function one(effects: Promise<TakenEffect[]>): Promise<TakenEffect> {
  const [effect, ...others] = await effects;
  expect(others).toEqual([]);
  if (effect === undefined) throw new Error('nothing was taken');
  return effect;
}

describe('take', () => {
  test('counts the try of a pending effect and dates it before anything can be sent', async () => {
    const number = await insertEffect(db, { key, subject: 'm-1' });
    const effect = await one(take());
    expect(effect).toMatchObject({ number, job: TEST_JOB, before: 'pending', fence: 1n, attempts: 1, lookUps: 0 });
    expect(effect.firstSentAgeMs).toBeNull();
    const { rows } = await db.query(
      `select state, attempts, first_sent_at is not null as sent, due_at > clock_timestamp() as leased from onceper.outbox where number = $1`,
      [number],
    );
    expect(rows).toEqual([{ state: 'sending', attempts: 1, sent: true, leased: true }]);
  });

  test('turns a sending effect past its lease into an unknown one and never counts it as a send', async () => {
    await insertEffect(db, { key, subject: 'm-1' });
    const first = await one(take());
    await endLeases();
    const second = await one(take());
    expect(second).toMatchObject({ before: 'sending', attempts: 1, lookUps: 1, fence: first.fence + 1n });
    expect(second.firstSentAgeMs).toBeGreaterThan(0);
    expect(await effectCounts(db, key)).toEqual({ unknown: 1 });
  });

  test('leaves alone what is leased, not due, final, of an action that does not deliver, or of a job that is not ours', async () => {
    await insertEffects(db, key, 3);
    await take(1);
    await db.query(
      `update onceper.outbox set due_at = clock_timestamp() + interval '1 hour' where key = $1 and subject = 'm-2'`,
      [key],
    );
    await forced(db, `update onceper.outbox set state = 'dead' where key = $1 and subject = 'm-3'`, [key]);
    expect(await take()).toEqual([]);
    await endLeases();
    expect(await takeFrom(db, 9, 1_000, ['another'])).toEqual([]);
    await db.query(`update onceper.action set delivering = false where key = $1`, [key]);
    expect(await take()).toEqual([]);
  });

  test('skips rows that another take holds and takes the rest, none twice', async () => {
    const numbers = await insertEffects(db, key, 50);
    const taken = await transaction(db, {}, async (tx) => {
      const held = await takeFrom(tx, 20);
      const others = await Promise.all([take(20), take(20)]);
      return [held, ...others].flat().map((effect) => effect.number);
    });
    expect(taken.sort()).toEqual(numbers.sort());
  });

  test('takes an effect whose transaction commits after later ones were taken', async () => {
    const taken = await transaction(db, {}, async (tx) => {
      await insertEffect(tx, { key, subject: 'm-1' });
      await insertEffect(db, { key, subject: 'm-2' });
      return (await take()).map((effect) => effect.subject);
    });
    expect(taken).toEqual(['m-2']);
    expect((await take()).map((effect) => effect.subject)).toEqual(['m-1']);
  });
});

describe('a re-send', () => {
  async function unknownEffect(): Promise<TakenEffect> {
    await insertEffect(db, { key, subject: 'm-1' });
    await take();
    await endLeases();
    return one(take());
  }
  const asked = { windowMs: 60_000, leaseMs: 60_000, requestHash: '-', status: 200 };

  test('is counted under a new fence with its look-up as a delivery', async () => {
    const effect = await unknownEffect();
    expect(await beginResend(db, effect, asked)).toEqual({ fence: effect.fence + 1n, attempts: 2 });
    expect(await effectCounts(db, key)).toEqual({ sending: 1 });
    const { rows } = await db.query(`select fence, step, outcome from onceper.delivery where number = $1`, [
      effect.number,
    ]);
    expect(rows).toEqual([{ fence: effect.fence, step: 'look_up', outcome: 'not_found' }]);
  });

  test('does not make the first send younger: the key window counts from it', async () => {
    const effect = await unknownEffect();
    const firstSent = () => db.query(`select first_sent_at from onceper.outbox where number = $1`, [effect.number]);
    const before = await firstSent();
    await beginResend(db, effect, asked);
    expect((await firstSent()).rows).toEqual(before.rows);
    await forced(db, `update onceper.outbox set state = 'pending' where number = $1`, [effect.number]);
    await endLeases();
    await take();
    expect((await firstSent()).rows).toEqual(before.rows);
  });

  test('is refused once the key window has passed by the clock of the database', async () => {
    const effect = await unknownEffect();
    await db.query(`update onceper.outbox set first_sent_at = clock_timestamp() - interval '61 s' where number = $1`, [
      effect.number,
    ]);
    expect(await beginResend(db, effect, asked)).toBeNull();
    expect(await effectCounts(db, key)).toEqual({ unknown: 1 });
  });

  test('is refused to whoever lost the fence', async () => {
    const effect = await unknownEffect();
    await endLeases();
    await take();
    expect(await beginResend(db, effect, asked)).toBeNull();
  });
});

test('released effects are due at once, as if they had not been taken', async () => {
  await insertEffects(db, key, 2);
  const [fresh] = await take(1);
  await forced(
    db,
    `update onceper.outbox set state = 'unknown', attempts = 1, first_sent_at = clock_timestamp() where key = $1 and attempts = 0`,
    [key],
  );
  const [unknown] = await take(1);
  if (fresh === undefined || unknown === undefined) throw new Error('two were due');
  expect(await releaseTaken(db, [fresh, unknown])).toBe(2);
  const { rows } = await db.query(
    `select state, attempts, lookups, first_sent_at is null as unsent, due_at <= clock_timestamp() as due
       from onceper.outbox where key = $1 order by state`,
    [key],
  );
  expect(rows).toEqual([
    { state: 'pending', attempts: 0, lookups: 0, unsent: true, due: true },
    { state: 'unknown', attempts: 1, lookups: 0, unsent: false, due: true },
  ]);
  expect(await releaseTaken(db, [{ ...fresh, fence: fresh.fence - 1n }])).toBe(0);
});
