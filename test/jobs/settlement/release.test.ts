import { beforeEach, describe, expect, it } from 'vitest';
import type { Holds } from '../../../src/jobs/holds.ts';
import { connect, transaction } from '../../../src/store/database.ts';
import { executeRequest } from '../../support/forced.ts';
import { waitFor } from '../../support/wait.ts';
import { csv } from './rows.ts';
import { Bench, contextOf, feesOf, job, ruleWith } from './settling.ts';

const bench = Bench.forThisFile();
const rule = ruleWith();
const key = 'settlement:2026-03';
const number = `${key}:m-1:GBP:payout`;
const by = { number, actor: 'user:bob', reason: 'the account was reopened' };

function holds(): Holds {
  if (job.holds === undefined) throw new Error('the settlement keeps money on hold');
  return job.holds;
}

const release = (ask = by) =>
  transaction(bench.db, {}, async (tx) => {
    await executeRequest(tx, 'release_hold', key, ask.number);
    return holds().release(tx, ask);
  });
const settles = (subject: string, state: 'succeeded' | 'failed' | 'returned') =>
  bench.settleEffect(key, subject, state);
/** By the books and per currency: what lies on hold, and what was ever released from it. */
async function balances(): Promise<unknown> {
  const { rows } = await bench.db.query<{ currency: string; onHold: bigint; released: bigint }>(
    `select currency, sum(on_hold)::int8 as "onHold", sum(released)::int8 as released
       from (select currency, case when credit = 'hold' then amount else -amount end as on_hold, 0 as released
               from settlement.posting where 'hold' in (debit, credit)
              union all
             select currency, 0, amount from settlement.assigned_posting where kind = 'release') part
      group by currency`,
  );
  return Object.fromEntries(rows.map(({ currency, ...sums }) => [currency, sums]));
}
const payoutsOf = async (period: string) =>
  (await bench.settle(rule, period)).effects.map((effect) => [effect.number, JSON.parse(effect.body) as object]);

beforeEach(async () => {
  await bench.empty();
  await bench.importText(csv('m-1 2026-03-01 10.00 GBP', 'm-2 2026-03-01 20.00 GBP', 'm-2 2026-04-01 1.00 GBP'));
  await bench.preparePeriods(rule);
  await bench.settle(rule, '2026-03');
  await settles('m-2', 'succeeded');
});

describe('money on hold', () => {
  beforeEach(() => settles('m-1', 'failed'));

  it('waits, month after month, until a person releases it', async () => {
    expect(await payoutsOf('2026-04')).toEqual([
      ['settlement:2026-04:m-2:GBP:payout', expect.objectContaining({ amount: '100' })],
    ]);
    const [hold] = await holds().find(bench.db, [number]);
    expect(hold).toMatchObject({ state: 'held', cause: 'failed', amount: 1000n, release: null });
    expect(await balances()).toEqual({ GBP: { onHold: 1000n, released: 0n } });
  });

  it('is paid once by the next period, under that period’s number, and the ledger balances at every step', async () => {
    expect(await release()).toMatchObject({ kind: 'released', hold: { release: { period: '2026-04' } } });
    expect(await bench.gaps()).toEqual({ GBP: 0n });
    const { result, effects } = await bench.settle(rule, '2026-04');
    expect(effects.map((effect) => [effect.number, (JSON.parse(effect.body) as { amount: string }).amount])).toEqual([
      ['settlement:2026-04:m-1:GBP:payout', '1000'],
      ['settlement:2026-04:m-2:GBP:payout', '100'],
    ]);
    expect(result.document.totals['GBP']).toMatchObject({ carryIn: '1000', assigned: '1000', payout: '1100' });
    expect(await bench.gaps()).toEqual({ GBP: 0n });
    expect((await bench.settle(rule, '2026-05')).effects).toEqual([]);
    expect(await balances()).toEqual({ GBP: { onHold: 0n, released: 1000n } });
  });

  it('is released once, however often and by how many at once it is asked', async () => {
    const said = await Promise.all(Array.from({ length: 8 }, () => release()));
    expect(said.map((one) => one.kind).sort()).toEqual([...Array<string>(7).fill('already_released'), 'released']);
    expect(await release({ ...by, reason: 'another' })).toMatchObject({
      kind: 'already_released',
      hold: { release: { reason: by.reason } },
    });
    expect(await bench.gaps()).toEqual({ GBP: 0n });
  });

  it('that is released while the next period is being sealed belongs to the one after it', async () => {
    const sealing = await connect(bench.db);
    try {
      await sealing.query('begin');
      await sealing.query(`select from settlement.period where period = '2026-04' for update`);
      const released = release();
      await waitingForTheSeal();
      await sealing.query(
        `update settlement.period set state = 'sealed', sealed_by_fence = 1, sealed_at = clock_timestamp() where period = '2026-04'`,
      );
      await sealing.query('commit');
      expect(await released).toMatchObject({ kind: 'released', hold: { release: { period: '2026-05' } } });
    } finally {
      sealing.release();
    }
    expect(await bench.gaps()).toEqual({ GBP: 0n });
  });

  it('of a currency that the rule has dropped since holds the period that it was released to', async () => {
    await release();
    const dropped = ruleWith({ parameters: { fees: feesOf('JPY') } });
    const inspection = await transaction(bench.db, {}, (tx) => job.inspect(tx, contextOf(dropped, '2026-04')));
    expect(inspection).toMatchObject({ kind: 'held', code: 'no_fee_rule' });
  });
});

describe('what is not on hold', () => {
  it('is not released: a payout that was paid, one that is on its way, one that never was', async () => {
    for (const subject of ['m-2', 'm-1', 'm-9']) {
      expect(await release({ ...by, number: `${key}:${subject}:GBP:payout` })).toEqual({ kind: 'not_held' });
    }
    expect(await bench.gaps()).toEqual({ GBP: 0n });
  });

  it('is found by its posting: a returned payout was paid, and is on hold since', async () => {
    await settles('m-1', 'succeeded');
    await settles('m-1', 'returned');
    expect(await holds().list(bench.db, { states: ['held'], key: null, after: null, limit: 10 })).toMatchObject([
      { number, cause: 'returned', amount: 1000n },
    ]);
    expect(await release()).toMatchObject({ kind: 'released' });
    expect(await payoutsOf('2026-04')).toHaveLength(2);
    const { rows } = await bench.db.query<{ n: number; currency: string; amount: bigint }>(
      `select count(*)::int4 as n, currency, sum(amount)::int8 as amount
         from settlement.assigned_posting where period = '2026-04' and kind = 'release' group by currency`,
    );
    expect(rows).toEqual([{ n: 1, currency: 'GBP', amount: 1000n }]);
  });
});

async function waitingForTheSeal(): Promise<void> {
  const waits = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await waitFor(async () => (await bench.db.query(waits)).rowCount > 0, { what: 'the release to wait for the seal' });
}
