import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { formatAmount } from '../../../kernel/money.ts';
import { type SampleOptions, type SampleRow, sampleRows } from './sample-rows.ts';

const pieceCharacters = 64 * 1024;

/** Writes a sample as a file of source `generic`, gz where the path ends so, in constant memory. Returns its rows. */
export async function writeSample(path: string, options: SampleOptions): Promise<{ readonly rows: number }> {
  let rows = 0;
  function* pieces(): Generator<string> {
    let piece = 'id,merchant,name,date,amount,currency\n';
    for (const row of sampleRows(options)) {
      piece += csvLine(row);
      rows += 1;
      if (piece.length < pieceCharacters) continue;
      yield piece;
      piece = '';
    }
    yield piece;
  }
  const text = Readable.from(pieces());
  if (path.endsWith('.gz')) await pipeline(text, createGzip(), createWriteStream(path));
  else await pipeline(text, createWriteStream(path));
  return { rows };
}

function csvLine(row: SampleRow): string {
  const name = `"${row.name.replaceAll('"', '""')}"`;
  return `${row.id},${row.merchant},${name},${row.date},${formatAmount(row.minor, row.currency)},${row.currency}\n`;
}
