import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import type pg from 'pg';
import { type CopyStreamQuery, from as copyFrom } from 'pg-copy-streams';
import type { StagedRow } from './source-format.ts';

/** Written to the server in pieces of about this size; a piece a row would cost a system call a row. */
const pieceCharacters = 64 * 1024;

/** Creates the staging table of one import: temporary, so it is not logged, and gone with the transaction. */
export async function createStage(client: pg.ClientBase): Promise<void> {
  await client.query(
    `create temp table settlement_stage (
       line int4 not null,
       id text collate "C",
       merchant text collate "C" not null,
       name text,
       canonical_name text collate "C",
       currency text collate "C" not null,
       amount bigint not null,
       occurred_on date not null,
       occurred_at timestamptz
     ) on commit drop`,
  );
}

/** Streams rows into the staging table by COPY, holding one piece of them in memory. */
export class Staging {
  readonly #copy: CopyStreamQuery;
  readonly #done: Promise<void>;
  #piece = '';

  constructor(client: pg.ClientBase) {
    this.#copy = client.query(
      copyFrom(
        `copy pg_temp.settlement_stage (line, id, merchant, name, canonical_name, currency, amount, occurred_on, occurred_at)
         from stdin`,
      ),
    );
    this.#done = finished(this.#copy);
    // Whoever ends or aborts the copy sees its fault; until then an early one must not end the process.
    this.#done.catch(() => undefined);
  }

  add(row: StagedRow, line: number): void {
    this.#piece +=
      `${line}\t${copyText(row.id)}\t${copyText(row.merchant)}\t${copyText(row.name)}\t${copyText(row.canonicalName)}` +
      `\t${copyText(row.currency)}\t${row.amount}\t${row.occurredOn}\t${copyText(row.occurredAt)}\n`;
  }

  /** Sends what has gathered, when it is enough, and waits while the server has too much. */
  async flush(atLeast: number = pieceCharacters): Promise<void> {
    if (this.#piece.length < atLeast) return;
    const piece = this.#piece;
    this.#piece = '';
    if (!this.#copy.write(piece)) await Promise.race([once(this.#copy, 'drain'), this.#done]);
  }

  /** Sends the rest and waits until the server has stored all of it. */
  async end(): Promise<void> {
    await this.flush(1);
    this.#copy.end();
    await this.#done;
  }

  /** Gives the copy up, so that the connection can roll back. */
  async abort(cause: Error): Promise<void> {
    this.#copy.destroy(cause);
    await this.#done.catch(() => undefined);
  }
}

/** A value in COPY's text format: the four characters that have a meaning in it, and null. */
function copyText(value: string | null): string {
  if (value === null) return '\\N';
  return /[\\\t\n\r]/.test(value)
    ? value.replace(/[\\\t\n\r]/g, (character) => copyEscapes[character] ?? character)
    : value;
}

const copyEscapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };
