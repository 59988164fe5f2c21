import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import type pg from 'pg';
import { type CopyStreamQuery, from as copyFrom } from 'pg-copy-streams';

/** Written to the server in pieces of about this size; a piece a row would cost a system call a row. */
const pieceCharacters = 64 * 1024;

/** Rows on their way to the server by one COPY statement, holding one piece of them in memory. */
export class CopyStream {
  readonly #copy: CopyStreamQuery;
  readonly #done: Promise<void>;
  #piece = '';
  #fault: Error | null = null;

  constructor(client: pg.ClientBase, statement: string) {
    this.#copy = client.query(copyFrom(statement));
    this.#done = finished(this.#copy);
    // Whoever goes on with the copy sees its fault; until then an early one must not end the process.
    this.#done.catch(() => undefined);
    // The stream neither remembers that the server refused it nor that its connection is free: writing on would fail otherwise.
    this.#copy.on('error', (error) => {
      this.#fault = error;
    });
  }

  /** Adds a row in COPY's text format, with its line end. */
  add(row: string): void {
    this.#piece += row;
  }

  /** Sends what has gathered, when it is enough, and waits while the server has too much. Throws what the server refused. */
  async flush(atLeast: number = pieceCharacters): Promise<void> {
    if (this.#fault !== null) throw this.#fault;
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
    if (this.#fault !== null) return;
    this.#copy.destroy(cause);
    await this.#done.catch(() => undefined);
  }
}

/** A value in COPY's text format: the four characters that have a meaning in it, and null. */
export function copyText(value: string | null): string {
  if (value === null) return '\\N';
  return /[\\\t\n\r]/.test(value)
    ? value.replace(/[\\\t\n\r]/g, (character) => copyEscapes[character] ?? character)
    : value;
}

const copyEscapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };
