import { beforeEach, describe, expect, it } from 'vitest';
import type { SettledEffect } from '../../../src/jobs/job.ts';
import { transaction } from '../../../src/store/database.ts';
import { csv } from './rows.ts';
import { Bench, contextOf, job, ruleWith } from './settling.ts';

const bench = Bench.forThisFile();
const rule = ruleWith({
  parameters: { fees: { GBP: { basisPoints: 100, fixed: '10' }, JPY: { basisPoints: 0, fixed: '0' } } },
});
const key = 'settlement:2026-03';

beforeEach(async () => {
  await bench.empty();
  await bench.importText(
    csv('m-1 2026-03-01 10.00 GBP', 'm-2 2026-03-01 20.00 GBP', 'm-2 2026-03-01 500 JPY', 'm-3 2026-03-01 -2.00 GBP'),
    { rule },
  );
});

const settleEffects = (...effects: readonly SettledEffect[]) =>
  transaction(bench.db, {}, (tx) => job.settleEffects(tx, effects));

function effect(subject: string, currency: string, state: SettledEffect['state']): SettledEffect {
  return { number: `${key}:${subject}:${currency}:payout`, key, subject, state };
}

/** Balance of each account in GBP: what was credited minus what was debited. */
async function balances(): Promise<Record<string, bigint>> {
  const { rows } = await bench.db.query<{ account: string; balance: bigint }>(
    `select side.account, sum(side.amount)::int8 as balance
       from settlement.posting p
      cross join lateral (values (p.debit, -p.amount), (p.credit, p.amount)) as side (account, amount)
      where currency = 'GBP'
      group by side.account`,
  );
  return Object.fromEntries(rows.map((row) => [row.account, row.balance]));
}

describe('the fate of a payout', () => {
  beforeEach(() => bench.settle(rule, '2026-03'));

  it('moves money in transit to cash, to hold, and a returned one from cash to hold', async () => {
    expect(await balances()).toEqual({ clearing: -2800n, payable: -200n, fees: 50n, in_transit: 2950n });
    expect(await job.inTransit?.(bench.db)).toEqual({ GBP: 2950n, JPY: 500n });
    await settleEffects(effect('m-1', 'GBP', 'succeeded'), effect('m-2', 'GBP', 'failed'));
    expect(await balances()).toMatchObject({ in_transit: 0n, cash: 980n, hold: 1970n });
    expect(await bench.gaps()).toEqual({ GBP: 0n, JPY: 0n });
    await settleEffects(effect('m-1', 'GBP', 'returned'));
    expect(await balances()).toMatchObject({ in_transit: 0n, cash: 0n, hold: 2950n });
    expect(await bench.gaps()).toEqual({ GBP: 0n, JPY: 0n });
  });

  it('is posted once, however often it is told', async () => {
    await settleEffects(effect('m-1', 'GBP', 'succeeded'));
    await settleEffects(effect('m-1', 'GBP', 'succeeded'), effect('m-2', 'JPY', 'succeeded'));
    await Promise.all([1, 2, 3].map(() => settleEffects(effect('m-2', 'GBP', 'failed'))));
    expect(await balances()).toMatchObject({ in_transit: 0n, cash: 980n, hold: 1970n });
    expect(await bench.gaps()).toEqual({ GBP: 0n, JPY: 0n });
  });

  it('is never both succeeded and failed', async () => {
    await settleEffects(effect('m-1', 'GBP', 'succeeded'));
    await expect(settleEffects(effect('m-1', 'GBP', 'failed'))).rejects.toMatchObject({
      at: 'posting_leaves_transit_once',
    });
  });

  it('is refused where no line has such a payout, and posts nothing of the others', async () => {
    const known = effect('m-1', 'GBP', 'succeeded');
    await expect(settleEffects(known, effect('m-9', 'GBP', 'succeeded'))).rejects.toMatchObject({
      code: 'effect_unknown',
    });
    const reversal = { ...known, number: `${known.number}:reversal` };
    await expect(settleEffects(reversal)).rejects.toMatchObject({ code: 'effect_unknown' });
    expect(await balances()).toMatchObject({ in_transit: 2950n });
  });
});

describe('the ledger', () => {
  it('balances between slices, after the close, and from one period to the next', async () => {
    await bench.importText(csv('m-3 2026-04-01 9.00 GBP', 'm-1 2026-04-01 3.00 GBP'), { rule });
    const small = { ...rule, subjectsPerSlice: 1 };
    for (const period of ['2026-03', '2026-04']) {
      const context = contextOf(small, period);
      const results: unknown[] = [];
      for (const slice of await bench.claim(context)) {
        results.push((await bench.perform(context, slice)).result);
        expect(await bench.gaps()).toMatchObject({ GBP: 0n });
      }
      await bench.closeKey(context, results);
      expect(await bench.gaps()).toEqual({ GBP: 0n, JPY: 0n });
    }
  });

  it('shows a posting that no line explains, per currency', async () => {
    await bench.settle(rule, '2026-03');
    await bench.db.query(
      `insert into settlement.posting (key, merchant, currency, kind, debit, credit, amount)
       values ($1, 'm-9', 'GBP', 'sale', 'clearing', 'payable', 7)`,
      [key],
    );
    expect(await bench.gaps()).toEqual({ GBP: 7n, JPY: 0n });
  });

  it('shows a line whose postings are missing', async () => {
    await bench.settle(rule, '2026-03');
    await bench.db.query(
      `insert into settlement.line (key, merchant, currency, period, transactions, sales, refunds, fees, net, carry_in, payout, closing)
       values ($1, 'm-9', 'JPY', '2026-03', 1, 40, 0, 0, 40, 0, 30, 10)`,
      [key],
    );
    expect(await bench.gaps()).toEqual({ GBP: 0n, JPY: 30n });
  });

  it('shows a transaction that slipped into a closed period', async () => {
    await bench.settle(rule, '2026-03');
    await bench.db.query(
      `insert into settlement.transaction (source, id, merchant, currency, amount, occurred_on, period, import_id)
       values ('generic', 'slipped', 'm-1', 'GBP', 123, '2026-03-02', '2026-03', 0)`,
    );
    expect(await bench.gaps()).toEqual({ GBP: 123n, JPY: 0n });
  });
});
