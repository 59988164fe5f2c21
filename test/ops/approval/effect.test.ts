import { expect, test } from 'vitest';
import { approveRequest, type Decided, executeApproval } from '../../../src/ops/approval/decide.ts';
import { requestApproval } from '../../../src/ops/approval/request.ts';
import { actsOn } from '../../../src/store/outbox-people.ts';
import { forced } from '../../support/forced.ts';
import { fates, insertEffect, testRegistry, useTestLedger } from '../../support/ledger-rows.ts';

const ledger = useTestLedger();
const parts = { registry: testRegistry(), release: 'test' };

/** An effect in a state that waits for a person. */
async function effectIn(state: 'dead' | 'needs_attention' | 'unknown', subject: string): Promise<string> {
  const number = await insertEffect(ledger.db, { key: await ledger.freshKey(), subject });
  await forced(
    ledger.db,
    `update onceper.outbox
        set state = $2, attempts = 1, fence = 4, first_sent_at = clock_timestamp(), last_sent_at = clock_timestamp()
      where number = $1`,
    [number, state],
  );
  return number;
}

const ask = (kind: 'resolve_effect' | 'retry_effect', number: string, more = {}) =>
  requestApproval(ledger.db, parts, { kind, ask: { number, ...more }, actor: 'os:ann', reason: 'bank letter' });
async function decide({ approval: { id, digest } }: Awaited<ReturnType<typeof ask>>): Promise<Decided> {
  await approveRequest(ledger.db, { token: null, id, digest, actor: 'os:bob', reason: null });
  return executeApproval(ledger.db, parts, { token: null, id, actor: 'os:bob' });
}
const stateOf = async (number: string) =>
  (await ledger.db.query<{ state: string }>('select state from onceper.outbox where number = $1', [number])).rows[0]
    ?.state;

test('an effect is resolved by the word of two people, and posted once', async () => {
  const number = await effectIn('unknown', 'm-1');
  const told = { as: 'succeeded', counterpartyId: 'tr_7' };
  const asked = await ask('resolve_effect', number, told);
  expect(asked.approval.plan).toMatchObject({
    number,
    state: 'unknown',
    amount: '1250',
    currency: 'GBP',
    as: 'succeeded',
  });
  expect(await stateOf(number)).toBe('unknown');
  // A relay that looks it up again meanwhile changes nothing about what is asked for.
  await ledger.db.query('update onceper.outbox set fence = fence + 1, lookups = lookups + 1 where number = $1', [
    number,
  ]);
  expect(await decide(asked)).toMatchObject({ kind: 'executed', wake: { kind: 'none' } });
  expect(await stateOf(number)).toBe('succeeded');
  expect(await fates(ledger.db)).toEqual([`${number} succeeded`]);
  expect(await actsOn(ledger.db, number)).toMatchObject([{ verb: 'resolve', actor: 'os:bob', reason: 'bank letter' }]);
});

test('a resolution of what the counterparty has told meanwhile is refused', async () => {
  const number = await effectIn('needs_attention', 'm-2');
  const asked = await ask('resolve_effect', number, { as: 'failed', counterpartyId: null });
  await forced(
    ledger.db,
    `update onceper.outbox set state = 'succeeded', counterparty_id = 'tr_1', final_at = clock_timestamp() where number = $1`,
    [number],
  );
  expect(await decide(asked)).toMatchObject({ kind: 'refused', code: 'world_moved' });
  expect(await stateOf(number)).toBe('succeeded');
});

test('what can’t be resolved so is refused before anybody is asked', async () => {
  const number = await effectIn('dead', 'm-3');
  const told = { as: 'succeeded', counterpartyId: 'tr_7' };
  await expect(ask('resolve_effect', number, told)).rejects.toMatchObject({ code: 'nothing_to_resolve' });
  const unknown = await effectIn('unknown', 'm-4');
  const unnamed = { as: 'succeeded', counterpartyId: null };
  await expect(ask('resolve_effect', unknown, unnamed)).rejects.toMatchObject({ code: 'counterparty_id_missing' });
});

test('a dead effect goes back to the relay under its number once another has approved it; a double click is one request', async () => {
  const number = await effectIn('dead', 'm-5');
  const [asked, again] = [await ask('retry_effect', number), await ask('retry_effect', number)];
  expect(again).toMatchObject({ isNew: false, approval: { id: asked.approval.id } });
  expect(await decide(asked)).toMatchObject({ kind: 'executed' });
  expect(await stateOf(number)).toBe('pending');
  const { rows } = await ledger.db.query('select from onceper.action where delivering and $1 like key || $2', [
    number,
    ':%',
  ]);
  expect(rows).toHaveLength(1);
  await expect(ask('retry_effect', number)).resolves.toMatchObject({ isNew: true });
});
