import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { csv, csvWithIds, placesOf } from '../rows.ts';
import { Bench, feesOf, ruleWith } from '../settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

const good = csvWithIds('t1 m-1 2026-03-01 1.00 GBP', 't2 m-2 2026-03-02 -2.00 GBP');

async function stored(): Promise<number> {
  const { rows } = await bench.db.query<{ n: number }>(`select count(*)::int4 as n from settlement.transaction`);
  return rows[0]?.n ?? -1;
}

describe('what is accepted', () => {
  const header = 'id,merchant,name,date,amount,currency';
  it.each([
    ['plain', `${header}\nt1,m-1,Acme,2026-03-01,1.00,GBP\n`],
    [
      'with a BOM and a quoted header',
      `\ufeff"id","merchant","name","date","amount","currency"\nt1,m-1,Acme,2026-03-01,1.00,GBP\n`,
    ],
    ['with CRLF', `${header}\r\nt1,m-1,Acme,2026-03-01,1.00,GBP\r\n`],
    ['with a header in another order', 'currency,amount,date,name,merchant,id\nGBP,1.00,2026-03-01,Acme,m-1,t1\n'],
    ['with blank lines at its end', `${header}\nt1,m-1,Acme,2026-03-01,1.00,GBP\n\n\n`],
    ['packed as gz, whatever it is called', gzipSync(`${header}\nt1,m-1,Acme,2026-03-01,1.00,GBP\n`)],
  ])('a file %s is read exactly', async (_case, content) => {
    expect(await bench.importText(content)).toMatchObject({
      kind: 'imported',
      rows: 1,
      added: 1,
      known: 0,
      late: 0,
      refused: [],
    });
    const { rows } = await bench.db.query(
      `select t.id, t.merchant, m.name, t.amount, t.currency, t.occurred_on, t.period
         from settlement.transaction t join settlement.merchant m on m.id = t.merchant`,
    );
    expect(rows).toEqual([
      {
        id: 't1',
        merchant: 'm-1',
        name: 'Acme',
        amount: 100n,
        currency: 'GBP',
        occurred_on: '2026-03-01',
        period: '2026-03',
      },
    ]);
  });

  it.each([
    ['quotes and commas', '"Acme, ""Best"" Ltd"', 'Acme, "Best" Ltd'],
    ['a line end', '"Acme\nLtd"', 'Acme\nLtd'],
    ['a CRLF', '"Acme\r\nLtd"', 'Acme\r\nLtd'],
    ['a tab and a backslash', 'Ac\tme \\N \\', 'Ac\tme \\N \\'],
    ['letters beyond ASCII', 'Łódź – naïve café 東京', 'Łódź – naïve café 東京'],
  ])('a name with %s arrives as it was written', async (_case, written, name) => {
    await bench.importText(`${header}\nt1,m-1,${written},2026-03-01,1.00,GBP\n`);
    const { rows } = await bench.db.query(`select name from settlement.merchant`);
    expect(rows).toEqual([{ name }]);
  });

  it('amounts become minor units by the digits of their currency, exactly (C40, C41)', async () => {
    const rule = ruleWith({ parameters: { fees: feesOf('EUR', 'JPY', 'KWD', 'CLF') } });
    await bench.importText(
      csvWithIds(
        ...[
          '8.20 EUR',
          '19.99 EUR',
          '4.35 EUR',
          '64.10 EUR',
          '80 JPY',
          '80.00 JPY',
          '1.234 KWD',
          '1.2345 CLF',
          '-0.01 EUR',
        ].map((amount, n) => `t${n} m-1 2026-03-01 ${amount}`),
      ),
      { rule },
    );
    const { rows } = await bench.db.query<{ amount: bigint }>(`select amount from settlement.transaction order by id`);
    expect(rows.map((row) => row.amount)).toEqual([820n, 1999n, 435n, 6410n, 80n, 80n, 1234n, 12345n, -1n]);
  });

  it('the name first seen stays the merchant’s', async () => {
    await bench.importText(`${header}\nt1,m-1,First,2026-03-01,1.00,GBP\nt2,m-1,Second,2026-03-01,1.00,GBP\n`);
    await bench.importText(`${header}\nt3,m-1,Third,2026-03-01,1.00,GBP\n`);
    const { rows } = await bench.db.query(`select id, source, name from settlement.merchant`);
    expect(rows).toEqual([{ id: 'm-1', source: 'generic', name: 'First' }]);
  });
});

describe('dates', () => {
  it.each(['UTC', 'Asia/Tokyo', 'America/Los_Angeles', 'Europe/Rome'])(
    'are the same whatever the zone of the process: %s (C52)',
    async (zone) => {
      vi.stubEnv('TZ', zone);
      try {
        await bench.importText(csv('m-1 2026-09-30 1.00 GBP', 'm-1 2026-10-01 2.00 GBP'));
        const { rows } = await bench.db.query(`select occurred_on, period from settlement.transaction order by amount`);
        expect(rows).toEqual([
          { occurred_on: '2026-09-30', period: '2026-09' },
          { occurred_on: '2026-10-01', period: '2026-10' },
        ]);
      } finally {
        vi.unstubAllEnvs();
      }
    },
  );

  it('are placed without an instant, and instants by the zone of the job', async () => {
    const rule = ruleWith({ zone: 'Pacific/Kiritimati' });
    // 10:30 UTC is half past midnight of 1 October there.
    await bench.importText(
      csv(
        'm-1 2026-09-30 1.00 GBP',
        'm-1 2026-09-30T10:30:00Z 2.00 GBP',
        'm-1 2026-09-30T11:59:59.999999+02:00 3.00 GBP',
      ),
      { rule },
    );
    const { rows } = await bench.db.query(
      `select amount, occurred_on, occurred_at, period from settlement.transaction order by amount`,
    );
    expect(rows).toEqual([
      { amount: 100n, occurred_on: '2026-09-30', occurred_at: null, period: '2026-09' },
      { amount: 200n, occurred_on: '2026-10-01', occurred_at: '2026-09-30T10:30:00Z', period: '2026-10' },
      { amount: 300n, occurred_on: '2026-09-30', occurred_at: '2026-09-30T09:59:59.999999Z', period: '2026-09' },
    ]);
  });

  it('of today in the job’s zone are accepted, later ones are not', async () => {
    const { rows } = await bench.db.query<{ today: string; later: string }>(
      `select (clock_timestamp() at time zone 'Europe/London')::date as today,
              (clock_timestamp() at time zone 'Europe/London')::date + 2 as later`,
    );
    const { today = '', later = '' } = rows[0] ?? {};
    expect(await bench.importText(csv(`m-1 ${today} 1.00 GBP`))).toMatchObject({ kind: 'imported', added: 1 });
    expect(await bench.importText(csv(`m-1 ${later} 1.00 GBP`))).toMatchObject({
      kind: 'refused',
      refused: [{ line: 2, reason: expect.stringContaining(`date '${later}' lies after today`) }],
    });
  });
});

describe('a refused file', () => {
  it.each([
    ['a row with a field too few', 't3,m-1,2026-03-01,1.00', /4 fields where the header has 5/],
    ['a row with a field too many', 't3,m-1,2026-03-01,1.00,GBP,x', /6 fields where the header has 5/],
    ['a grouped amount', 't3,m-1,2026-03-01,"1,234.56",GBP', /'1,234.56' GBP is not an amount/],
    ['a grouped amount without quotes', 't3,m-1,2026-03-01,1,234.56,GBP', /6 fields/],
    ['half a yen', 't3,m-1,2026-03-01,0.5,JPY', /'0.5' has more decimals than JPY has \(0\)/],
    ['a tenth of a penny', 't3,m-1,2026-03-01,1.005,EUR', /more decimals than EUR/],
    ['an amount as a float is printed', 't3,m-1,2026-03-01,1e3,GBP', /not an amount/],
    ['an amount with a blank', 't3,m-1,2026-03-01, 1.00,GBP', /not an amount/],
    ['no amount', 't3,m-1,2026-03-01,,GBP', /not an amount/],
    ['an amount beyond a column', 't3,m-1,2026-03-01,99999999999999999999,GBP', /larger than the ledger can hold/],
    ['an unknown currency', 't3,m-1,2026-03-01,1.00,XXX', /'XXX' is not a currency/],
    ['a currency in small letters', 't3,m-1,2026-03-01,1.00,gbp', /'gbp' is not a currency/],
    ['no currency', 't3,m-1,2026-03-01,1.00,', /'' is not a currency/],
    ['a date that does not exist', 't3,m-1,2026-02-30,1.00,GBP', /'2026-02-30' is not a date/],
    ['a date in another order', 't3,m-1,01/03/2026,1.00,GBP', /neither YYYY-MM-DD nor an instant/],
    ['an instant without offset', 't3,m-1,2026-03-01T10:00:00,1.00,GBP', /not an instant/],
    ['a date before the first period', 't3,m-1,2025-12-31,1.00,GBP', /lies before 2026-01-01/],
    ['a date in the future', 't3,m-1,2899-01-01,1.00,GBP', /lies after today/],
    ['a merchant in capitals', 't3,M-1,2026-03-01,1.00,GBP', /'M-1' has characters other than/],
    ['no merchant', 't3,,2026-03-01,1.00,GBP', /merchant is empty/],
    ['no id where the others have one', ',m-1,2026-03-01,1.00,GBP', /id is empty/],
    ['an id with blanks around it', '" t3",m-1,2026-03-01,1.00,GBP', /has blanks around it/],
    ['an id that a terminal would obey', 't3\u001b[2J,m-1,2026-03-01,1.00,GBP', /id holds control characters/],
    ['an id that turns the direction of writing', 't3\u202e,m-1,2026-03-01,1.00,GBP', /id holds control characters/],
    ['a total at its end', 'TOTAL,,,-1.00,', /merchant is empty/],
    ['a quote in the middle of a field', 't3,m"1,2026-03-01,1.00,GBP', /a quote in the middle of a field/],
    ['text after a closing quote', 't3,"m-1"x,2026-03-01,1.00,GBP', /text after a closing quote/],
    ['a quote that never closes', 't3,"m-1,2026-03-01,1.00,GBP', /never closed/],
  ])('has %s, which is named by its line, and nothing of it is stored', async (_case, row, reason) => {
    const result = await bench.importText(`${good}${row}\n`);
    expect(result).toMatchObject({
      kind: 'refused',
      added: 0,
      known: 0,
      late: 0,
      refused: [{ line: 4, reason: expect.stringMatching(reason) }],
      refusedTotal: 1,
    });
    expect(await stored()).toBe(0);
  });

  it('names every row that refuses it, in the order of the lines', async () => {
    const result = await bench.importText(
      `${good}t3,m-1,2026-03-01,x,GBP\nt4,m-1,2026-03-01,1.00,GBP\nt5,m-1\nt1,m-1,2026-03-01,9.00,GBP\nt6,m-1,2026-03-01,1.00,XXX\n`,
    );
    expect(result).toMatchObject({ rows: 7, refusedTotal: 4 });
    expect(result.refused.map(({ line }) => line)).toEqual([4, 6, 7, 8]);
    expect(await stored()).toBe(0);
  });

  it('names the line of the file, also after blank lines and line ends inside quotes', async () => {
    const result = await bench.importText(
      'merchant,name,date,amount,currency\r\nm-1,"a\r\nb\r\nc",2026-03-01,1.00,GBP\r\n\r\nm-1,x,2026-03-01,bad,GBP\r\nm-1,"d\ne",2026-03-01,bad,GBP\r\nm-1,x,2026-03-01,bad,GBP\r\n',
    );
    expect(result.refused.map(({ line }) => line)).toEqual([6, 7, 9]);
  });

  it('keeps the first ten thousand refusals and counts the others', async () => {
    const result = await bench.importText(`${good}${'t,m-1,2026-03-01,bad,GBP\n'.repeat(10_050)}`);
    expect(result.refused).toHaveLength(10_000);
    expect(result.refused.at(-1)).toMatchObject({ line: 10_003 });
    expect(result).toMatchObject({ refusedTotal: 10_050 });
  });

  const cut = Buffer.from(good).subarray(0, -6);
  const packed = gzipSync(
    `${good}${Array.from({ length: 2000 }, (_, n) => `u${n},m-1,2026-03-01,${n}.17,GBP\n`).join('')}`,
  );
  it.each([
    ['is empty', '', 1, /the file is empty/],
    ['has a header and nothing else', 'id,merchant,date,amount,currency\n', 1, /a header and no row/],
    ['has blank lines and nothing else', '\n\n', 1, /the file is empty/],
    ['lacks columns', 'id,merchant,amount\nt1,m-1,1.00\n', 1, /the header lacks 'date', 'currency'/],
    ['is separated by semicolons', good.replaceAll(',', ';'), 1, /the header lacks/],
    ['has no header', good.slice(good.indexOf('\n') + 1), 1, /the header lacks/],
    [
      'names a column twice',
      'merchant,date,amount,currency,amount\nm-1,2026-03-01,1.00,GBP,1.00\n',
      1,
      /'amount' twice/,
    ],
    ['has a column that it misspells', good.replace('id,', 'ID,'), 1, /the header has 'ID'/],
    ['is cut in the middle of a row', cut, 3, /the last line has no line end: the file may be cut/],
    ['is cut inside a quoted field', `${good}t3,"m-1`, 4, /no line end/],
    ['is UTF-16', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(good, 'utf16le')]), 1, /UTF-16/],
    ['is UTF-16 without a mark', Buffer.from(good, 'utf16le'), 1, /NUL byte/],
    ['is Latin-1', Buffer.from(`${good}t3,m-1,2026-03-01,1.00,GB\u00a3\n`, 'latin1'), 4, /not UTF-8/],
    ['is one endless line', 'x'.repeat(200_000), 1, /longer than/],
    ['hides everything behind one quote', `${good}t3,"${'m-1\n'.repeat(40_000)}`, 4, /longer than|never closed/],
    [
      'is a damaged gz',
      Buffer.concat([packed.subarray(0, 3000), Buffer.from('xxxx'), packed.subarray(3004)]),
      null,
      /gz file is cut or damaged/,
    ],
    ['is a gz that was cut', packed.subarray(0, -9), null, /gz file is cut or damaged/],
  ])('%s, which is said with a line', async (_case, content, line, reason) => {
    const result = await bench.importText(content);
    expect(result).toMatchObject({ kind: 'refused', added: 0 });
    expect(result.refused).toContainEqual({ line: line ?? expect.any(Number), reason: expect.stringMatching(reason) });
    expect(await stored()).toBe(0);
  });

  it('says what is wrong with a last row beside its missing line end', async () => {
    const result = await bench.importText(`${good}t3,m-1,2026-03-01,0.5,JPY`);
    expect(result.refused.map(({ line, reason }) => `${line} ${reason}`)).toEqual([
      expect.stringMatching(/^4 the last line has no line end/),
      expect.stringMatching(/^4 .*more decimals than JPY/),
    ]);
  });

  it('leaves no trace: the connection is usable and the next import of the mended file is whole', async () => {
    await bench.importText(`${good}t3,m-1\n`);
    expect(await bench.importText(good)).toMatchObject({ kind: 'imported', rows: 2, added: 2 });
  });

  it('is an error, not a refusal, where it can’t be read or its source is unknown', async () => {
    await expect(bench.importPath(bench.path('absent.csv'))).rejects.toMatchObject({ code: 'file_unreadable' });
    await expect(bench.importPath(bench.path('.'))).rejects.toMatchObject({ code: 'file_unreadable' });
    await expect(bench.importText(good, { source: 'oxford' })).rejects.toMatchObject({
      code: 'unknown_source',
      remedy: expect.stringContaining('birmingham-cards'),
    });
  });
});

describe('an import on record', () => {
  it('says who stored how many rows of which file', async () => {
    await bench.importText(good, { actor: 'alice' });
    await bench.importText(good, { actor: 'bob' }, 'again.csv');
    const { rows } = await bench.db.query<Record<string, unknown>>(
      `select source, rows, added, known, late, actor, length(sha256) as digits from settlement.import order by id`,
    );
    expect(rows).toEqual([
      { source: 'generic', rows: 2n, added: 2n, known: 0n, late: 0n, actor: 'alice', digits: 64 },
      { source: 'generic', rows: 2n, added: 0n, known: 2n, late: 0n, actor: 'bob', digits: 64 },
    ]);
    expect(await placesOf(bench)).toHaveLength(2);
  });
});
