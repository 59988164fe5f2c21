import type pg from 'pg';
import { readFileBytes } from './file-bytes.ts';
import { FileFault } from './file-fault.ts';
import { Records } from './records.ts';
import type { Refusals } from './refusals.ts';
import { RowReader } from './row-reader.ts';
import type { RowContext, Source } from './source-format.ts';
import { createStage, Staging } from './staging.ts';
import type { Identity } from './transactions.ts';
import { wholeLines } from './whole-lines.ts';

/** A file in the staging table. */
export interface StagedFile {
  /** Rows after the header, refused ones included. */
  readonly rows: number;
  readonly staged: number;
  readonly identity: Identity;
  /** Of the staged rows, in order. */
  readonly currencies: readonly string[];
  /** SHA-256 of the file as it lay on the disk, hex; meaningful only when the file was read to its end. */
  readonly sha256: string;
}

/**
 * Streams a file into the staging table of the client's transaction. Every row that does not fit its format is added to
 * `refusals` and reading goes on, so that one look shows all of them; where the file itself breaks it ends there.
 */
export async function stageFile(
  client: pg.ClientBase,
  of: { path: string; source: Source; context: RowContext; refusals: Refusals },
): Promise<StagedFile> {
  const bytes = await readFileBytes(of.path);
  await createStage(client);
  const staging = new Staging(client);
  let staged = 0;
  let identity: Identity = 'stated';
  const currencies = new Set<string>();
  const reader = new RowReader({
    ...of,
    stage(row, line) {
      staging.add(row, line);
      identity = row.id === null ? 'content' : 'stated';
      currencies.add(row.currency);
      staged += 1;
    },
  });
  try {
    await readRows(bytes.chunks, { reader, staging, refusals: of.refusals });
    await staging.end();
  } catch (error) {
    await staging.abort(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
  if (reader.rows === 0 && of.refusals.total === 0) of.refusals.add(1, emptyFile(reader));
  // Fresh statistics: without them the planner takes the table for a few rows and joins ten million by nested loops.
  await client.query('analyze pg_temp.settlement_stage');
  return { rows: reader.rows, staged, identity, currencies: [...currencies].sort(), sha256: bytes.digest() };
}

async function readRows(
  chunks: AsyncIterable<Buffer>,
  to: { reader: RowReader; staging: Staging; refusals: Refusals },
): Promise<void> {
  const records = new Records((fields, line) => to.reader.take(fields, line));
  try {
    for await (const block of wholeLines(chunks, ({ line, reason }) => to.refusals.add(line, reason))) {
      await records.feed(block);
      await to.staging.flush();
    }
    await records.end();
  } catch (error) {
    if (!(error instanceof FileFault)) throw error;
    to.refusals.add(error.line, error.reason);
  }
}

/** A period without transactions is an explicit act (`--set empty=true`), never a file that came out empty. */
function emptyFile(reader: RowReader): string {
  return reader.hasHeader ? 'the file has a header and no row' : 'the file is empty';
}
