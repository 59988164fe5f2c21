import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it } from 'vitest';
import { Bench } from '../settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

const HEADER = 'merchant,date,amount,currency\n';
const MIB = 1_024 * 1_024;

/** A gz of a header and `text` again and again, 1.15 GB of it: gz that is written one behind the other is one. */
function bomb(text: string): Buffer {
  const packed = gzipSync(text.repeat(Math.floor((64 * MIB) / text.length)));
  return Buffer.concat([gzipSync(HEADER), ...Array<Buffer>(18).fill(packed)]);
}

/** How far the memory of this process rises while `act` runs. */
async function risen<T>(act: () => Promise<T>): Promise<{ readonly result: T; readonly bytes: number }> {
  const before = process.memoryUsage.rss();
  let most = before;
  const timer = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 10);
  try {
    return { result: await act(), bytes: most - before };
  } finally {
    clearInterval(timer);
  }
}

describe('a gz of a few megabytes that is 1.15 GB', () => {
  it.each([
    ['of one row without an end', ',', 2, /a line longer than 65536 bytes/],
    ['of rows of 60,000 fields', `${','.repeat(60_000)}\n`, 2, /a row of more than 1000 fields/],
    ['of rows of commas', ',,,\n', 100_002, /more than 100000 rows are wrong/],
    ['of blank lines', '\n', 10_002, /more than 10000 blank lines/],
    ['of long names over many lines', `"${'\n'.repeat(1_000)}",m\n`, null, /unpacks to more than 100 times its size/],
    ['of rows that are good', 'm-1,2026-03-01,1.00,GBP\n', null, /unpacks to more than 100 times its size/],
  ])('%s is refused with its line, in constant memory', async (_, text, line, reason) => {
    const file = bomb(text);
    expect(file.length).toBeLessThan(8 * MIB);
    const { result, bytes } = await risen(() => bench.importText(file));
    expect(result).toMatchObject({ kind: 'refused', added: 0 });
    expect(result.refused).toContainEqual({
      line: line ?? (expect.any(Number) as number),
      reason: expect.stringMatching(reason) as string,
    });
    expect(bytes).toBeLessThan(256 * MIB);
  });
});

it('a file that packs well, and is small, is read', async () => {
  const rows = 'm-1,2026-03-01,1.00,GBP\n'.repeat(50_000);
  expect(await bench.importText(gzipSync(HEADER + rows))).toMatchObject({ kind: 'imported', rows: 50_000 });
});

it('of lines without a comma none is searched beyond its end', async () => {
  const result = await bench.importText(`${HEADER}${'x\n'.repeat(99_000)}`);
  expect(result).toMatchObject({ kind: 'refused', refusedTotal: 99_000 });
});
