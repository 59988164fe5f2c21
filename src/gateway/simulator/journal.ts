import { closeSync, fsyncSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { OnceperError } from '../../kernel/error.ts';
import { foundTransferShape } from '../transfer.ts';

/**
 * One line: what was decided about one POST, or `settled` when a transfer took another status. Lines with `executed` are the
 * truth about money. `status` and `bodyHash` are what the memory of numbers needs after a restart.
 */
const entryShape = z.object({
  seq: z.int().min(1),
  at: z.string(),
  number: z.string(),
  decision: z.enum(['executed', 'replayed', 'refused', 'dropped', 'settled']),
  transfer: foundTransferShape.nullable(),
  status: z.int().nullable(),
  bodyHash: z.string().nullable(),
});

export type JournalEntry = z.infer<typeof entryShape>;

/** The journal's file, open for appending. */
export interface Journal {
  /** Resolves when the line is on the disk; lines that wait together share one write and one fsync. */
  append(entry: JournalEntry): Promise<void>;
  close(): Promise<void>;
}

const CHUNK_BYTES = 1_024 * 1_024;
const NEWLINE = 0x0a;

/**
 * Hands every line of the journal to `take`, in order. A last line without its end, torn by a kill or a full disk, was never
 * answered for: it is cut off, and its bytes are returned so that the caller can report them. A missing file is empty.
 * @throws OnceperError `journal_corrupt` naming the line, for any other line that is none.
 */
export function readJournal(path: string, take: (entry: JournalEntry) => void): { readonly tornBytes: number } {
  const file = openSync(path, 'a+', 0o644);
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    let rest: Buffer = Buffer.alloc(0);
    let whole = 0;
    let lines = 0;
    for (let at = 0; ; ) {
      const count = readSync(file, chunk, 0, CHUNK_BYTES, at);
      if (count === 0) break;
      at += count;
      rest = Buffer.concat([rest, chunk.subarray(0, count)]);
      let start = 0;
      for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE, start)) {
        lines += 1;
        take(parseLine(path, lines, rest.toString('utf8', start, end)));
        start = end + 1;
      }
      whole += start;
      rest = rest.subarray(start);
    }
    if (rest.length > 0) {
      ftruncateSync(file, whole);
      fsyncSync(file);
    }
    return { tornBytes: rest.length };
  } finally {
    closeSync(file);
  }
}

function parseLine(path: string, line: number, text: string): JournalEntry {
  let value: unknown = null;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw corrupt(path, line, error);
  }
  const parsed = entryShape.safeParse(value);
  if (parsed.success) return parsed.data;
  throw corrupt(path, line, parsed.error);
}

function corrupt(path: string, line: number, cause: unknown): OnceperError {
  return new OnceperError({
    code: 'journal_corrupt',
    message: `line ${line} of the gateway's journal is no journal line`,
    remedy: 'it is the truth about money: keep it, and give the gateway another --journal file',
    at: path,
    cause,
  });
}

/** Opens the journal for appending; its folder is fsynced too, or a new file's name could be lost with the power. */
export async function openJournal(path: string): Promise<Journal> {
  const file = await open(path, 'a', 0o644);
  const folder = await open(dirname(path), 'r');
  await folder.sync();
  await folder.close();
  let waiting: { line: string; done: () => void; failed: (error: unknown) => void }[] = [];
  let writing: Promise<void> | null = null;
  let broken: unknown = null;

  async function writeAll(): Promise<void> {
    // Whoever appends in this turn of the loop shares the first fsync already.
    await Promise.resolve();
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      try {
        if (broken !== null) throw broken;
        await file.appendFile(group.map(({ line }) => line).join(''));
        await file.datasync();
        for (const { done } of group) done();
      } catch (error) {
        // After a failed fsync nobody knows what is on the disk: no later line may pretend to follow it.
        broken = error;
        for (const { failed } of group) failed(error);
      }
    }
    writing = null;
  }

  return {
    append(entry) {
      return new Promise((done, failed) => {
        waiting.push({ line: `${JSON.stringify(entry)}\n`, done, failed });
        writing ??= writeAll();
      });
    },
    async close() {
      await writing;
      await file.close();
    },
  };
}
