import { beforeEach, expect, it } from 'vitest';
import { csvWithIds } from '../rows.ts';
import { Bench } from '../settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

const good = csvWithIds('t1 m-1 2026-03-01 1.00 GBP');

it.each([
  ['an id', '2.02608E+15,m-1,2026-03-01,25.00,GBP', "id '2.02608E+15'"],
  ['a short id', '1E5,m-1,2026-03-01,1.00,GBP', "id '1E5'"],
  ['an id with a comma', '"1,23E+4",m-1,2026-03-01,1.00,GBP', "id '1,23E+4'"],
  ['a negative id', '-1.5e-07,m-1,2026-03-01,1.00,GBP', "id '-1.5e-07'"],
  ['a merchant', 't3,1E+05,2026-03-01,1.00,GBP', "merchant '1E+05'"],
  ['a merchant in small letters', 't3,1e5,2026-03-01,1.00,GBP', "merchant '1e5'"],
])('%s in scientific notation refuses the file: a spreadsheet has shortened it', async (_what, row, named) => {
  expect(await bench.importText(`${good}${row}\n`)).toMatchObject({
    kind: 'refused',
    added: 0,
    refused: [
      {
        line: 3,
        reason: `${named} is a number as a spreadsheet shortens it, so its digits are lost: export it again, with that column as text`,
      },
    ],
  });
});

it.each(['123e4567', '2E45678', '1E5a', 'E5', 'e-5', '12E4', '5f2e9'])(
  'an id that only looks like a number of a spreadsheet is an id: %s',
  async (id) => {
    expect(await bench.importText(csvWithIds(`${id} m-1 2026-03-01 1.00 GBP`))).toMatchObject({ added: 1 });
  },
);
