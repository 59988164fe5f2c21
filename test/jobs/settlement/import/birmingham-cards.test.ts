import { beforeEach, describe, expect, it } from 'vitest';
import { Bench, ruleWith } from '../settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

const rule = ruleWith({ first: '2016-12' });
const header =
  'ROW,FILE,TRANS DATE,TRANS VAT DESC,ORIGINAL GROSS AMT,ORIGINAL CUR,BILLING GROSS AMT,BILLING CUR CODE,MERCHANT NAME,DIRECTORATE';
const cards = (rows: readonly string[], over = {}, name = 'cards.csv') =>
  bench.importText(`${[header, ...rows].join('\r\n')}\r\n`, { source: 'birmingham-cards', rule, ...over }, name);

describe('card transactions', () => {
  it('count by the billed amount, are named by file and row, and are dated by the local date', async () => {
    await cards(['7,jan.xls,2017-01-31,VR,99.00,USD,72.61,GBP,shell kings 587,Adult']);
    const { rows } = await bench.db.query(
      `select t.source, t.id, t.amount, t.currency, t.period, m.name, m.canonical_name
         from settlement.transaction t join settlement.merchant m on m.id = t.merchant`,
    );
    expect(rows).toEqual([
      {
        source: 'birmingham-cards',
        id: 'jan.xls#7',
        amount: 7261n,
        currency: 'GBP',
        period: '2017-01',
        name: 'shell kings 587',
        canonical_name: 'shell kings 587',
      },
    ]);
  });

  it('that repeat in full under other rows are all real', async () => {
    const row = 'jan.xls,2017-01-31,VR,1,GBP,1,GBP,shell,Adult';
    expect(await cards([`2,${row}`, `3,${row}`, `4,${row}`])).toMatchObject({ rows: 3, added: 3 });
  });

  it('of one merchant spelt with other blanks and capitals are one merchant’s, under the name first seen', async () => {
    await cards([
      '2,a,2017-01-31,VR,1,GBP,1,GBP,Shell  Kings,Adult',
      '3,a,2017-01-31,VR,1,GBP,1,GBP, shell KINGS ,Adult',
    ]);
    const { rows } = await bench.db.query(
      `select m.name, count(*)::int4 as transactions
         from settlement.transaction t join settlement.merchant m on m.id = t.merchant group by m.name`,
    );
    expect(rows).toEqual([{ name: 'Shell  Kings', transactions: 2 }]);
  });

  it('have merchant ids that depend on the name alone, not on what came before', async () => {
    const rows = ['2,a,2017-01-31,VR,1,GBP,1,GBP,first,Adult', '3,a,2017-01-31,VR,1,GBP,1,GBP,second,Adult'];
    const idsAfter = async (order: readonly string[]) => {
      await bench.empty();
      await cards(order);
      return (await bench.db.query(`select id, name from settlement.merchant order by name`)).rows;
    };
    expect(await idsAfter(rows.toReversed())).toEqual(await idsAfter(rows));
  });

  it.each([
    ['FILE', '2,,2017-01-31,VR,1,GBP,1,GBP,shell,Adult', /FILE is empty/],
    ['ROW', ',jan.xls,2017-01-31,VR,1,GBP,1,GBP,shell,Adult', /ROW is empty/],
    ['ROW that a spreadsheet left', '1E+05,jan.xls,2017-01-31,VR,1,GBP,1,GBP,shell,Adult', /ROW '1E\+05' is a number/],
    ['merchant', '2,jan.xls,2017-01-31,VR,1,GBP,1,GBP,  ,Adult', /the name is blank/],
    ['date', '2,jan.xls,31/01/2017,VR,1,GBP,1,GBP,shell,Adult', /neither YYYY-MM-DD/],
  ])('without a usable %s are refused by line', async (_what, row, reason) => {
    expect(await cards([row])).toMatchObject({
      kind: 'refused',
      refused: [{ line: 2, reason: expect.stringMatching(reason) }],
    });
  });
});

describe('two names that derive one merchant id', () => {
  const colliding = { sha256: () => '0'.repeat(64) };

  it('refuse the file that holds both, by line', async () => {
    const rows = ['2,a,2017-01-31,VR,1,GBP,1,GBP,first,Adult', '3,a,2017-01-31,VR,1,GBP,1,GBP,second,Adult'];
    expect(await cards(rows, colliding)).toMatchObject({
      kind: 'refused',
      refused: [
        { line: 3, reason: expect.stringContaining(`'second' and 'first' derive the same id m-00000000000000000000`) },
      ],
    });
  });

  it('refuse the later of two files, and leave the first as it is', async () => {
    await cards(['2,a,2017-01-31,VR,1,GBP,1,GBP,first,Adult'], colliding);
    expect(await cards(['2,b,2017-01-31,VR,1,GBP,1,GBP,second,Adult'], colliding)).toMatchObject({ kind: 'refused' });
    const { rows } = await bench.db.query(`select name from settlement.merchant`);
    expect(rows).toEqual([{ name: 'first' }]);
  });
});
