import { beforeEach, describe, expect, it } from 'vitest';
import { transaction } from '../../../src/store/database.ts';
import { csv } from './rows.ts';
import { Bench, contextOf, feesOf, job, ruleWith } from './settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

const rule = ruleWith();

describe('before admission', () => {
  const inspect = (period: string, overrides = {}) =>
    transaction(bench.db, {}, (tx) => job.inspect(tx, contextOf(rule, period, { overrides })));

  it('a period without transactions and balances is held as empty, unless the request confirms it', async () => {
    await bench.preparePeriods(rule);
    expect(await inspect('2026-03')).toMatchObject({ kind: 'held', code: 'empty' });
    expect(await inspect('2026-03', { empty: 'true' })).toEqual({ kind: 'ready' });
  });

  it('a period with a balance alone, or a transaction alone, is ready', async () => {
    await bench.importText(csv('m-1 2026-02-01 -1.00 GBP'));
    expect(await inspect('2026-02')).toEqual({ kind: 'ready' });
    await bench.settle(rule, '2026-02');
    expect(await inspect('2026-03')).toEqual({ kind: 'ready' });
  });

  it('a period with balances that are paid out is empty', async () => {
    await bench.importText(csv('m-1 2026-02-01 1.00 GBP'));
    await bench.settle(rule, '2026-02');
    expect(await inspect('2026-03')).toMatchObject({ kind: 'held', code: 'empty' });
  });

  it('a currency without a fee rule holds the period by name, at the seal it fails the attempt and opens the period again', async () => {
    await bench.importText(csv('m-1 2026-03-01 1.00 CHF', 'm-1 2026-03-01 1.00 GBP', 'm-2 2026-03-01 1.00 USD'));
    expect(await inspect('2026-03')).toEqual({
      kind: 'held',
      code: 'no_fee_rule',
      reason: '2026-03 has amounts in CHF, USD, for which the rule has no fees',
    });
    await expect(bench.claim(contextOf(rule, '2026-03'))).rejects.toMatchObject({ code: 'no_fee_rule' });
    expect(await stateOf('2026-03')).toBe('open');
  });

  it('a balance in a currency that the rule dropped holds the next period', async () => {
    await bench.importText(csv('m-1 2026-02-01 -1.00 KWD', 'm-1 2026-03-01 1.00 GBP'));
    await bench.settle(rule, '2026-02');
    const dropped = ruleWith({ parameters: { fees: feesOf('GBP') } });
    const inspection = await transaction(bench.db, {}, (tx) => job.inspect(tx, contextOf(dropped, '2026-03')));
    expect(inspection).toMatchObject({ kind: 'held', code: 'no_fee_rule' });
  });
});

describe('a seal', () => {
  it('by an earlier fence of the key stands for a later one, and a closed period is not sealed again', async () => {
    await bench.importText(csv('m-1 2026-03-01 1.00 GBP'));
    const slices = await bench.claim(contextOf(rule, '2026-03', { fence: 1n }));
    expect(await bench.claim(contextOf(rule, '2026-03', { fence: 4n }))).toEqual(slices);
    const later = contextOf(rule, '2026-03', { fence: 4n });
    const results = [];
    for (const slice of slices) results.push((await bench.perform(later, slice)).result);
    await bench.closeKey(later, results);
    await expect(bench.claim(contextOf(rule, '2026-03', { fence: 5n }))).rejects.toMatchObject({
      code: 'period_not_open',
    });
  });

  it('by a later fence turns an older holder away', async () => {
    await bench.importText(csv('m-1 2026-03-01 1.00 GBP'));
    await bench.claim(contextOf(rule, '2026-03', { fence: 3n }));
    await expect(bench.claim(contextOf(rule, '2026-03', { fence: 2n }))).rejects.toMatchObject({
      code: 'period_not_open',
    });
  });

  it('never opens again, not even by hand, and no bound moves', async () => {
    await bench.importText(csv('m-1 2026-03-01 1.00 GBP'));
    await bench.settle(rule, '2026-03');
    const byHand = (change: string) =>
      bench.db.query(`update settlement.period set ${change} where period = '2026-03'`);
    await expect(byHand(`state = 'open'`)).rejects.toMatchObject({ at: 'period_state_goes_forward' });
    await expect(byHand(`starts_on = '2026-03-02'`)).rejects.toMatchObject({ at: 'period_bounds_frozen' });
  });

  it('is needed before a slice is performed', async () => {
    await bench.importText(csv('m-1 2026-03-01 1.00 GBP'));
    const slice = { slice: 1, firstSubject: 'm-1', lastSubject: 'm-1' };
    await expect(bench.perform(contextOf(rule, '2026-03'), slice)).rejects.toMatchObject({ code: 'period_not_sealed' });
  });
});

describe('close', () => {
  it('gives the same document id when it is repeated after a roll-back, and closes once', async () => {
    await bench.importText(csv('m-1 2026-03-01 1.00 GBP'));
    const context = contextOf(rule, '2026-03');
    const [slice] = await bench.claim(context);
    if (slice === undefined) throw new Error('no slice');
    const { result } = await bench.perform(context, slice);
    const rolledBack = new Error('the commit failed');
    let first: unknown;
    const lost = transaction(bench.db, {}, async (tx) => {
      first = await job.close(tx, context, [result]);
      throw rolledBack;
    });
    await expect(lost).rejects.toBe(rolledBack);
    expect(await bench.closeKey(context, [result])).toEqual(first);
    await expect(bench.closeKey(context, [result])).rejects.toMatchObject({ code: 'period_not_sealed' });
  });

  it('refuses a document in which a sealed transaction was not settled', async () => {
    await bench.importText(csv('m-1 2026-03-01 1.00 GBP', 'm-2 2026-03-01 2.00 GBP'));
    const context = contextOf(ruleWith({ subjectsPerSlice: 1 }), '2026-03');
    const [first] = await bench.claim(context);
    if (first === undefined) throw new Error('no slice');
    const { result } = await bench.perform(context, first);
    await expect(bench.closeKey(context, [result])).rejects.toMatchObject({
      code: 'settlement_unbalanced',
      message: expect.stringContaining('GBP: sealed were 2 transactions of 300, settled 1 of 100'),
    });
    expect(await stateOf('2026-03')).toBe('sealed');
  });

  it('refuses totals that do not add up', async () => {
    await bench.importText(csv('m-1 2026-03-01 1.00 GBP'));
    const context = contextOf(rule, '2026-03');
    const [slice] = await bench.claim(context);
    if (slice === undefined) throw new Error('no slice');
    const { result } = await bench.perform(context, slice);
    const forged = JSON.parse(JSON.stringify(result).replace('"payout":"100"', '"payout":"90"')) as unknown;
    await expect(bench.closeKey(context, [forged])).rejects.toMatchObject({ code: 'settlement_unbalanced' });
  });

  it('has a hash over its lines: another amount is another document', async () => {
    const ids = new Set<string>();
    for (const amount of ['1.00', '1.01']) {
      await bench.empty();
      await bench.importText(csv(`m-1 2026-03-01 ${amount} GBP`));
      ids.add((await bench.settle(rule, '2026-03')).result.document.id);
    }
    expect(ids.size).toBe(2);
  });
});

async function stateOf(period: string): Promise<string | undefined> {
  const { rows } = await bench.db.query<{ state: string }>(`select state from settlement.period where period = $1`, [
    period,
  ]);
  return rows[0]?.state;
}
