import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { csv, csvWithIds, linesOf } from '../rows.ts';
import { Bench, ruleWith } from '../settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

const rule = ruleWith();

describe('transactions with ids of their source', () => {
  const file = csvWithIds('t1 m-1 2026-03-01 1.00 GBP', 't2 m-1 2026-03-01 1.00 GBP');

  it('are known again under another file name and in another order', async () => {
    await bench.importText(file);
    const shuffled = csvWithIds(
      't2 m-1 2026-03-01 1.00 GBP',
      't3 m-1 2026-03-01 1.00 GBP',
      't1 m-1 2026-03-01 1.00 GBP',
    );
    expect(await bench.importText(shuffled, {}, 'renamed.csv')).toMatchObject({ rows: 3, added: 1, known: 2 });
  });

  describe('repeated in one file with the same content', () => {
    const repeating = csvWithIds(
      't1 m-1 2026-03-01 1.00 GBP',
      't2 m-1 2026-03-01 1.00 GBP',
      't1 m-1 2026-03-01 1.00 GBP',
      't1 m-1 2026-03-01T00:00:00Z 1.00 GBP',
      't1 m-1 2026-03-01 1.00 GBP',
    ).replace('t1,m-1,2026-03-01T', 't3,m-1,2026-03-01T');

    it('refuse it, each by its line and the line that it repeats', async () => {
      const reason =
        "id 't1' repeats line 2 with the same content; where such rows are one transaction, say --allow-repeats";
      expect(await bench.importText(repeating)).toMatchObject({
        kind: 'refused',
        refused: [
          { line: 4, reason },
          { line: 6, reason },
        ],
        refusedTotal: 2,
      });
    });

    it('count once where a person allows it, which is told', async () => {
      const imported = await bench.importText(repeating, { allowRepeats: true });
      expect(imported).toMatchObject({ kind: 'imported', rows: 5, added: 3, known: 2, repeats: 2 });
      expect(await bench.importText(file, {}, 'later.csv')).toMatchObject({ added: 0, known: 2, repeats: 0 });
    });
  });

  it.each([
    ['amount', 't1 m-1 2026-03-01 1.01 GBP'],
    ['merchant', 't1 m-2 2026-03-01 1.00 GBP'],
    ['currency', 't1 m-1 2026-03-01 1.00 EUR'],
    ['date', 't1 m-1 2026-03-02 1.00 GBP'],
    ['time', 't1 m-1 2026-03-01T10:00:00Z 1.00 GBP'],
  ])('with another %s than the one stored are a conflict, named by line (C21)', async (_what, row) => {
    await bench.importText(file);
    expect(await bench.importText(csvWithIds('t9 m-1 2026-03-01 1.00 GBP', row))).toMatchObject({
      kind: 'refused',
      added: 0,
      refused: [
        { line: 3, reason: expect.stringContaining(`id 't1' is stored already with other content (100 GBP of m-1`) },
      ],
    });
  });

  it('with two contents in one file are a conflict of the later line', async () => {
    const contradicting = csvWithIds(
      't1 m-1 2026-03-01 2.00 GBP',
      't2 m-1 2026-03-01 1.00 GBP',
      't1 m-1 2026-03-01 1.00 GBP',
    );
    expect(await bench.importText(contradicting)).toMatchObject({
      kind: 'refused',
      refused: [
        { line: 4, reason: expect.stringContaining(`id 't1' is in this file already with other content (200 GBP`) },
      ],
    });
  });
});

describe('transactions without ids', () => {
  it('that are identical are two, and re-importing them is none', async () => {
    const file = csv('m-1 2026-03-01 1.00 GBP', 'm-1 2026-03-01 1.00 GBP');
    expect(await bench.importText(file)).toMatchObject({ rows: 2, added: 2 });
    expect(await bench.importText(file, {}, 'renamed.csv')).toMatchObject({ rows: 2, added: 0, known: 2 });
    const third = csv('m-1 2026-03-01 1.00 GBP', 'm-1 2026-03-01 1.00 GBP', 'm-1 2026-03-01 1.00 GBP');
    expect(await bench.importText(third)).toMatchObject({ rows: 3, added: 1, known: 2 });
  });

  it('differ by merchant, currency, amount, date and instant, and not by how these are spelt or what the merchant is called', async () => {
    await bench.importText(
      'merchant,name,date,amount,currency\nm-1,Acme,2026-03-01,1.00,GBP\nm-1,Acme,2026-03-01T00:00:00Z,1.00,GBP\n',
    );
    expect(
      await bench.importText(
        'name,merchant,date,amount,currency\nACME,m-1,2026-03-01,1,GBP\nACME,m-1,2026-03-01T01:00:00+01:00,1.0,GBP\n',
      ),
    ).toMatchObject({ rows: 2, added: 0, known: 2 });
    expect(
      await bench.importText(
        csv('m-2 2026-03-01 1.00 GBP', 'm-1 2026-03-01 1.00 EUR', 'm-1 2026-03-01 1.01 GBP', 'm-1 2026-03-02 1.00 GBP'),
      ),
    ).toMatchObject({ rows: 4, added: 4 });
  });

  it('are the same whatever the order, however often some of them repeat', async () => {
    const row = fc.constantFrom('m-1 2026-03-01 1.00 GBP', 'm-1 2026-03-01 2.00 GBP', 'm-2 2026-03-01 1.00 GBP');
    const rows = fc.array(row, { minLength: 1, maxLength: 12 });
    const shuffled = rows.chain((order) =>
      fc.tuple(fc.constant(order), fc.shuffledSubarray(order, { minLength: order.length })),
    );
    await fc.assert(
      fc.asyncProperty(shuffled, async ([order, other]) => {
        await bench.empty();
        expect(await bench.importText(csv(...order))).toMatchObject({ added: order.length });
        expect(await bench.importText(csv(...other))).toMatchObject({ added: 0, known: order.length });
      }),
      { numRuns: 15 },
    );
  });
});

describe('two imports of one source at once', () => {
  it('of one file in opposite orders store each row once and never deadlock', async () => {
    const rows = Array.from({ length: 1500 }, (_, n) => `t${n} m-${n % 40} 2026-03-0${1 + (n % 9)} ${n}.25 GBP`);
    const files = [csvWithIds(...rows), csvWithIds(...rows.toReversed())];
    for (let round = 0; round < 4; round += 1) {
      await bench.empty();
      const results = await Promise.all(files.map((file, n) => bench.importText(file, {}, `half-${n}.csv`)));
      expect(results.map(({ kind }) => kind)).toEqual(['imported', 'imported']);
      expect(results.reduce((sum, { added }) => sum + added, 0)).toBe(rows.length);
    }
  });
});

describe('effect numbers', () => {
  it('and bodies are the same when the files come in another order into an empty database', async () => {
    const files = [
      csvWithIds(...Array.from({ length: 40 }, (_, n) => `a${n} m-${n % 7} 2026-03-02 ${n}.10 GBP`)),
      csvWithIds(...Array.from({ length: 40 }, (_, n) => `b${n} m-${n % 9} 2026-03-03 ${n}.20 GBP`)),
      csv(...Array.from({ length: 40 }, (_, n) => `m-${n % 5} 2026-03-04 ${n % 3}.30 GBP`)),
    ];
    const settleInOrder = async (order: readonly string[]) => {
      await bench.empty();
      for (const [n, file] of order.entries()) await bench.importText(file, {}, `${n}.csv`);
      const { effects, result } = await bench.settle(rule, '2026-03');
      return { effects, result, lines: await linesOf(bench, '2026-03') };
    };
    const forwards = await settleInOrder(files);
    expect(forwards.effects).toHaveLength(9);
    expect(await settleInOrder(files.toReversed())).toEqual(forwards);
  });
});
