import { readFileBytes } from './file-bytes.ts';
import { FileFault } from './file-fault.ts';
import { Records } from './records.ts';
import type { Refusals } from './refusals.ts';
import { RowReader } from './row-reader.ts';
import { RowSample } from './row-sample.ts';
import type { RowContext, Source, StagedRow } from './source-format.ts';
import type { Identity } from './transactions.ts';
import { wholeLines } from './whole-lines.ts';

/** Where the rows of a file go, in the order of their lines. */
export interface Sink {
  add(row: StagedRow, line: number): void;
  /** Sends what has gathered, when it is enough, and waits while the server has too much. */
  flush(): Promise<void>;
  /** Sends the rest and waits until the server has stored all of it. */
  end(): Promise<void>;
  /** Gives up, so that the connection can roll back. */
  abort(cause: Error): Promise<void>;
}

/** What was read of a file. */
export interface FileRead {
  /** Rows after the header, refused ones included. */
  readonly rows: number;
  /** Rows that the sink was given. */
  readonly read: number;
  readonly identity: Identity;
  /** Of the rows read, added up without their signs, whatever their currency. */
  readonly magnitude: bigint;
  /** Of the rows read, all or some that are spread over the file. */
  readonly sample: readonly StagedRow[];
  /** Of the rows read, in order. */
  readonly currencies: readonly string[];
  /** SHA-256 of the file as it lay on the disk, hex; meaningful only when the file was read to its end. */
  readonly sha256: string;
}

/** What to read, as what, and who is told of rows that do not fit. */
export interface Reading {
  readonly path: string;
  readonly source: Source;
  readonly context: RowContext;
  readonly refusals: Refusals;
}

/**
 * Streams a file into a sink. Every row that does not fit its format is added to `refusals` and reading goes on, so that one
 * look shows all of them; where the file itself breaks it ends there. What the sink throws ends it, the sink aborted.
 */
export async function readFile(of: Reading, sink: Sink): Promise<FileRead> {
  const bytes = await readFileBytes(of.path);
  let read = 0;
  let identity: Identity = 'stated';
  let magnitude = 0n;
  const sample = new RowSample();
  const currencies = new Set<string>();
  const reader = new RowReader({
    ...of,
    stage(row, line) {
      sink.add(row, line);
      identity = row.id === null ? 'content' : 'stated';
      magnitude += row.amount < 0n ? -row.amount : row.amount;
      currencies.add(row.currency);
      sample.add(row);
      read += 1;
    },
  });
  try {
    await readRows(bytes.chunks, { reader, sink, refusals: of.refusals });
    await sink.end();
  } catch (error) {
    await sink.abort(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
  if (reader.rows === 0 && of.refusals.total === 0) of.refusals.add(1, emptyFile(reader));
  const { rows } = reader;
  const named = [...currencies].sort();
  return { rows, read, identity, magnitude, sample: sample.rows, currencies: named, sha256: bytes.digest() };
}

async function readRows(
  chunks: AsyncIterable<Buffer>,
  to: { reader: RowReader; sink: Sink; refusals: Refusals },
): Promise<void> {
  const records = new Records((fields, line) => to.reader.take(fields, line));
  try {
    for await (const block of wholeLines(chunks, ({ line, reason }) => to.refusals.add(line, reason))) {
      await records.feed(block);
      await to.sink.flush();
    }
    await records.end();
  } catch (error) {
    if (!(error instanceof FileFault)) throw error;
    to.refusals.addLast(error.line, error.reason);
  }
}

/** A period without transactions is an explicit act (`--set empty=true`), never a file that came out empty. */
function emptyFile(reader: RowReader): string {
  return reader.hasHeader ? 'the file has a header and no row' : 'the file is empty';
}
