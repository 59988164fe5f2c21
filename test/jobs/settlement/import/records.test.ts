import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Records } from '../../../../src/jobs/settlement/import/records.ts';

/** Records with their lines, or the code of the fault, of a text that is fed in blocks of so many lines. */
async function recordsOf(text: string, linesABlock: number): Promise<unknown> {
  const taken: { fields: readonly string[]; line: number }[] = [];
  const records = new Records((fields, line) => taken.push({ fields, line }));
  const lines = text.split(/(?<=\n)/);
  try {
    for (let at = 0; at < lines.length; at += linesABlock) {
      await records.feed(Buffer.from(lines.slice(at, at + linesABlock).join('')));
    }
    await records.end();
  } catch {
    return { taken, broken: true };
  }
  return { taken, broken: false };
}

const field = fc.oneof(
  fc.constantFrom(
    '',
    'a',
    ' b ',
    'é',
    '"c"',
    '"d,e"',
    '"f""g"',
    '"h\ni"',
    '"j\r\nk"',
    '""',
    'l"m',
    '"n"o',
    '"p',
    'q\rr',
  ),
  fc.string({ maxLength: 4 }),
);
const csvText = fc
  .array(fc.tuple(fc.array(field, { minLength: 1, maxLength: 4 }), fc.constantFrom('\n', '\r\n')), { maxLength: 12 })
  .map((rows) => rows.map(([fields, end]) => `${fields.join(',')}${end}`).join(''));

it('records are those of the parser, on the same lines, whatever the blocks and whichever lines are simple', async () => {
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(csvText, fc.integer({ min: 1, max: 4 }), async (text, linesABlock) => {
      // After a record of two lines all of its block goes the parser's way: in one block nothing is simple.
      const whole = await recordsOf(`h\n"x\ny"\n${text}`, Number.MAX_SAFE_INTEGER);
      const inBlocks = await recordsOf(`h\n"x\ny"\n${text}`, linesABlock);
      expect(inBlocks).toEqual(whole);
      compared += 1;
    }),
    { numRuns: 2_000 },
  );
  expect(compared).toBeGreaterThanOrEqual(2_000);
});

it('fields are the parser’s own for lines with quotes, commas inside them, empty fields and CRLF', async () => {
  const text = 'x,y\n"a",b\r\n,\n"c,d",\n"",""\n"e""f",g\nh,"i\nj"\nk,l\n';
  const expected = (parse(text, { record_delimiter: ['\r\n', '\n'] }) as string[][]).slice(0);
  const found = (await recordsOf(text, 1)) as { taken: { fields: string[]; line: number }[] };
  expect(found.taken.map(({ fields }) => fields)).toEqual(expected);
  expect(found.taken.map(({ line }) => line)).toEqual([1, 2, 3, 4, 5, 6, 7, 9]);
});
