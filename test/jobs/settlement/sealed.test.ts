import { beforeEach, describe, expect, it } from 'vitest';
import { connect, transaction } from '../../../src/store/database.ts';
import { waitFor } from '../../support/wait.ts';
import { atCommitOfRows } from './at-commit.ts';
import { csv, linesOf, placesOf } from './rows.ts';
import { Bench, contextOf, ruleWith } from './settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

const rule = ruleWith({ subjectsPerSlice: 1 });
const march = contextOf(rule, '2026-03');

describe('an import into a sealed period', () => {
  it('between two slices, and between the last slice and close, changes no line and is settled once, in the next', async () => {
    await bench.importText(csv('m-1 2026-03-01 1.00 GBP', 'm-2 2026-03-01 2.00 GBP'));
    const [first, second, ...others] = await bench.claim(march);
    if (first === undefined || second === undefined) throw new Error('two slices were expected');
    const results = [(await bench.perform(march, first)).result];
    const between = await bench.importText(csv('m-1 2026-03-02 0.10 GBP', 'm-2 2026-03-02 0.20 GBP'));
    results.push((await bench.perform(march, second)).result);
    const beforeClose = await bench.importText(csv('m-2 2026-03-03 0.40 GBP', 'm-3 2026-03-03 0.80 GBP'));
    await bench.closeKey(march, results);
    const afterClose = await bench.importText(csv('m-4 2026-03-04 1.60 GBP'));

    expect(others).toEqual([]);
    expect([between, beforeClose, afterClose].map(({ added, late }) => [added, late])).toEqual([
      [2, 2],
      [2, 2],
      [1, 1],
    ]);
    expect((await linesOf(bench, '2026-03')).map(({ merchant, sales }) => [merchant, sales])).toEqual([
      ['m-1', 100n],
      ['m-2', 200n],
    ]);
    await bench.settle(rule, '2026-04');
    expect((await linesOf(bench, '2026-04')).map(({ merchant, sales }) => [merchant, sales])).toEqual([
      ['m-1', 10n],
      ['m-2', 60n],
      ['m-3', 80n],
      ['m-4', 160n],
    ]);
    expect(await placesOf(bench)).toContainEqual({ amount: 160n, period: '2026-04', lateFrom: '2026-03' });
    expect(await bench.gaps()).toEqual({ GBP: 0n });
  });

  it('of a row years late goes to the next open period, past all that are closed (C48)', async () => {
    await bench.preparePeriods(rule);
    for (const period of ['2026-01', '2026-02', '2026-03']) await bench.settle(rule, period);
    const late = await bench.importText(csv('m-1 2026-01-31 5.00 GBP', 'm-1 2026-04-01 7.00 GBP'));
    expect(late).toMatchObject({ added: 2, late: 1 });
    expect(await placesOf(bench)).toEqual([
      { amount: 500n, period: '2026-04', lateFrom: '2026-01' },
      { amount: 700n, period: '2026-04', lateFrom: null },
    ]);
  });

  it('of a skipped one moves on as late', async () => {
    await bench.preparePeriods(rule);
    await bench.db.query(`update settlement.period set state = 'skipped' where period = '2026-01'`);
    await bench.importText(csv('m-1 2026-01-31 5.00 GBP'));
    expect(await placesOf(bench)).toEqual([{ amount: 500n, period: '2026-02', lateFrom: '2026-01' }]);
  });
});

describe('a seal that commits while an import is under way', () => {
  it('keeps out the rows that were already inserted: they move, and none is lost', async () => {
    await bench.preparePeriods(rule);
    const sealing = await connect(bench.db);
    try {
      await sealing.query('begin');
      await sealing.query(
        `update settlement.period set state = 'sealed', sealed_by_fence = 1, sealed_totals = '{}' where period = '2026-03'`,
      );
      // Inserted as open rows of March, then waiting for the seal in the last statement.
      const importing = bench.importText(
        csv('m-1 2026-03-01 1.00 GBP', 'm-1 2026-02-01 2.00 GBP', 'm-1 2026-01-01 3.00 GBP'),
      );
      await waitFor(() => isSomebodyWaiting(), { what: 'the import to wait for the seal' });
      await sealing.query('commit');
      expect(await importing).toMatchObject({ kind: 'imported', added: 3, late: 1 });
    } finally {
      sealing.release();
    }
    expect(await placesOf(bench)).toEqual([
      { amount: 100n, period: '2026-04', lateFrom: '2026-03' },
      { amount: 200n, period: '2026-02', lateFrom: null },
      { amount: 300n, period: '2026-01', lateFrom: null },
    ]);
  });

  it('moves a row on twice where the next period is sealed meanwhile too, and keeps its origin', async () => {
    await bench.preparePeriods(rule);
    await bench.settle(rule, '2026-01');
    const sealing = await connect(bench.db);
    try {
      await sealing.query('begin');
      await sealing.query(
        `update settlement.period set state = 'sealed', sealed_by_fence = 1, sealed_totals = '{}' where period in ('2026-02', '2026-03')`,
      );
      const importing = bench.importText(csv('m-1 2026-01-05 1.00 GBP', 'm-2 2026-02-05 2.00 GBP'));
      await waitFor(() => isSomebodyWaiting(), { what: 'the import to wait for the seal' });
      await sealing.query('commit');
      expect(await importing).toMatchObject({ kind: 'imported', added: 2, late: 2 });
    } finally {
      sealing.release();
    }
    expect(await placesOf(bench)).toEqual([
      { amount: 100n, period: '2026-04', lateFrom: '2026-01' },
      { amount: 200n, period: '2026-04', lateFrom: '2026-02' },
    ]);
  });

  it('waits for an import that is placed for good, and settles its rows', async () => {
    await bench.preparePeriods(rule);
    const gate = signal();
    const reached = signal();
    const importing = bench.importText(csv('m-1 2026-03-01 1.00 GBP'), {
      connect: async () =>
        atCommitOfRows(await connect(bench.db), async (commit) => {
          reached.give();
          await gate.given;
          return commit();
        }),
    });
    await reached.given;
    const claiming = bench.claim(march);
    await waitFor(() => isSomebodyWaiting(), { what: 'the seal to wait for the import' });
    gate.give();
    expect(await importing).toMatchObject({ kind: 'imported', added: 1, late: 0 });
    expect(await claiming).toEqual([{ slice: 1, firstSubject: 'm-1', lastSubject: 'm-1' }]);
  });

  it('is not held up by an import that is only inserting', async () => {
    await bench.preparePeriods(rule);
    const locking = await connect(bench.db);
    try {
      await locking.query('begin');
      // Any row of the merchant's key stops the import in the middle of its inserts.
      await locking.query(`insert into settlement.merchant (id, source, name) values ('m-1', 'generic', 'm-1')`);
      const importing = bench.importText(csv('m-1 2026-03-01 1.00 GBP'));
      await waitFor(() => isSomebodyWaiting(), { what: 'the import to wait in its insert' });
      expect(await bench.claim(march)).toEqual([]);
      await locking.query('commit');
      expect(await importing).toMatchObject({ kind: 'imported', added: 1, late: 1 });
    } finally {
      locking.release();
    }
    expect(await placesOf(bench)).toEqual([{ amount: 100n, period: '2026-04', lateFrom: '2026-03' }]);
  });

  it('leaves every row of twenty racing imports in exactly one document', async () => {
    await bench.preparePeriods(rule);
    const sums = new Map<string, bigint>();
    const imports = Array.from({ length: 20 }, (_, n) =>
      bench.importText(csv(`m-${n % 3} 2026-01-15 ${n + 1}.00 GBP`), {}, `race-${n}.csv`),
    );
    for (const period of ['2026-01', '2026-02', '2026-03']) {
      const { result } = await bench.settle(rule, period);
      sums.set(period, BigInt(result.document.totals['GBP']?.['sales'] ?? '0'));
    }
    const imported = await Promise.all(imports);
    const { result } = await bench.settle(rule, '2026-04');
    sums.set('2026-04', BigInt(result.document.totals['GBP']?.['sales'] ?? '0'));
    expect(imported.map(({ kind, added }) => `${kind} ${added}`)).toEqual(Array(20).fill('imported 1'));
    expect([...sums.values()].reduce((a, b) => a + b)).toBe(21_000n);
    expect(await bench.gaps()).toEqual({ GBP: 0n });
  });
});

/** Something that is given once and can be waited for. */
function signal(): { readonly given: Promise<void>; readonly give: () => void } {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

async function isSomebodyWaiting(): Promise<boolean> {
  const { rows } = await transaction(bench.db, {}, (tx) =>
    tx.query<{ waiting: boolean }>(
      `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock') as waiting`,
    ),
  );
  return rows[0]?.waiting ?? false;
}
