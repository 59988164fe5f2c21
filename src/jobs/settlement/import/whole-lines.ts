import { isUtf8 } from 'node:buffer';
import { gzFault } from './file-bytes.ts';
import { FileFault } from './file-fault.ts';
import type { Refusal } from './refusals.ts';

const lineFeed = 0x0a;

/** Longer than any real row; without a bound a missing quote or line end would take the whole file into memory. */
export const longestRowBytes = 64 * 1024;

/**
 * Cuts the bytes of a file into blocks of whole lines and lets nothing pass that is not UTF-8 text: a wrong encoding is
 * named by its line instead of becoming a merchant's name. Throws FileFault. A last line without its line end, which is what
 * a file cut in the middle of a row looks like, is told to `cut` and passed on, so that its own faults are named as well.
 */
export async function* wholeLines(
  chunks: AsyncIterable<Buffer>,
  cut: (refusal: Refusal) => void,
): AsyncGenerator<Buffer> {
  let line = 1;
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of namingTheLine(chunks, () => line)) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    checkByteOrder(bytes, line);
    const end = bytes.lastIndexOf(lineFeed) + 1;
    const block = bytes.subarray(0, end);
    line = checkLines(block, line);
    rest = bytes.subarray(end);
    if (rest.length > longestRowBytes) {
      checkText(rest.subarray(0, longestRowBytes - 4), line);
      throw new FileFault(line, `a line longer than ${longestRowBytes} bytes`);
    }
    if (end > 0) yield block;
  }
  if (rest.length === 0) return;
  checkText(rest, line);
  cut({ line, reason: 'the last line has no line end: the file may be cut; if it is whole, end its last line' });
  yield rest;
}

/** What is wrong with a gz becomes a fault of the file, at the line reached. */
async function* namingTheLine(chunks: AsyncIterable<Buffer>, line: () => number): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (error) {
    const reason = gzFault(error);
    if (reason === null) throw error;
    throw new FileFault(line(), reason);
  }
}

function checkByteOrder(bytes: Buffer, line: number): void {
  if (line > 1 || bytes.length < 2) return;
  const mark = bytes.readUInt16BE(0);
  if (mark === 0xfffe || mark === 0xfeff) throw new FileFault(1, 'the file is UTF-16; save it as UTF-8');
}

/** Checks a block at once, and line by line only to name the wrong one. Returns the number of the line after it. */
function checkLines(block: Buffer, first: number): number {
  const isText = isUtf8(block) && !block.includes(0);
  let line = first;
  let start = 0;
  for (let end = block.indexOf(lineFeed); end !== -1; end = block.indexOf(lineFeed, start)) {
    if (!isText) checkText(block.subarray(start, end), line);
    start = end + 1;
    line += 1;
  }
  return line;
}

function checkText(bytes: Buffer, line: number): void {
  if (bytes.includes(0)) throw new FileFault(line, 'a NUL byte: the file is UTF-16 or no text; save it as UTF-8');
  if (!isUtf8(bytes)) throw new FileFault(line, 'bytes that are not UTF-8; save the file as UTF-8');
}
