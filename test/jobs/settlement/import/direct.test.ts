import { beforeEach, describe, expect, it } from 'vitest';
import { csvWithIds } from '../rows.ts';
import { Bench, contextOf, ruleWith } from '../settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

const header = 'id,merchant,name,date,amount,currency\n';

describe('rows that are stored as they are read', () => {
  it('are the same, placed in the same periods, as those of a file of which a row was known', async () => {
    const first = `${header}a1,m-2,"Tab\tand, ""quotes""",2026-02-28,1.00,GBP\n`;
    const others = [
      'a2,m-1,back\\slash,2026-01-15,2.50,GBP',
      'a3,m-1,,2026-03-31T23:30:00+01:00,-0.10,GBP',
      'a4,m-3,,2026-04-01T00:00:00+01:00,80,JPY',
      'a5,m-3,,2026-03-31T23:59:59.999999+01:00,1.234,KWD',
      'a6,m-2,another name,2026-05-31,3.00,EUR',
      'a7,m-1,,2026-01-31T23:59:59Z,4.00,GBP',
    ];
    const whole = `${first}${others.map((line) => `${line}\n`).join('')}`;
    await sealJanuary();
    expect(await bench.importText(whole)).toMatchObject({ kind: 'imported', added: 7, known: 0, late: 2 });
    const direct = await stored();
    await bench.empty();
    await sealJanuary();
    await bench.importText(first);
    expect(await bench.importText(whole)).toMatchObject({ kind: 'imported', added: 6, known: 1, late: 2 });
    expect(await stored()).toEqual(direct);
    expect(direct.merchants).toMatchObject([
      { id: 'm-1', name: 'back\\slash' },
      { id: 'm-2', name: 'Tab\tand, "quotes"' },
      { id: 'm-3', name: 'm-3' },
    ]);
  });

  it('are all of a file that takes several COPY statements, and none of it where its last row is in conflict', async () => {
    const rows = Array.from({ length: 60_000 }, (_, i) => `t${i},m-${i % 55_000},n${i},2026-03-01,1.00,GBP\n`).join('');
    expect(await bench.importText(`${header}${rows}`)).toMatchObject({ added: 60_000, known: 0 });
    const { rows: counted } = await bench.db.query(
      `select (select count(*)::int4 from settlement.merchant) as merchants,
              (select name from settlement.merchant where id = 'm-5') as name`,
    );
    expect(counted).toEqual([{ merchants: 55_000, name: 'n5' }]);
    const more = rows.replaceAll(/^t/gm, 'u');
    const conflict = await bench.importText(`${header}${more}t7,m-7,n7,2026-03-01,9.00,GBP\n`);
    expect(conflict).toMatchObject({ kind: 'refused', refused: [{ line: 60_002 }] });
  });

  it('are refused with every row that does not fit, and leave nothing', async () => {
    const file = csvWithIds('a m-1 2026-03-01 1.00 GBP', 'b m-1 2026-02-30 1.00 GBP', 'c m-1 2026-03-01 x GBP');
    const refused = await bench.importText(file);
    expect(refused).toMatchObject({ kind: 'refused', refused: [{ line: 3 }, { line: 4 }], added: 0 });
    expect(await stored()).toEqual({ transactions: [], merchants: [] });
  });
});

/** Rows of January are late from here on. */
async function sealJanuary(): Promise<void> {
  const rule = ruleWith();
  await bench.preparePeriods(rule);
  await bench.claim(contextOf(rule, '2026-01'));
}

async function stored() {
  const { rows: transactions } = await bench.db.query(
    `select source, id, merchant, currency, amount, occurred_on::text, occurred_at::text, period, late_from
       from settlement.transaction order by source, id`,
  );
  const { rows: merchants } = await bench.db.query(
    'select id, source, name, canonical_name from settlement.merchant order by id',
  );
  return { transactions, merchants };
}
