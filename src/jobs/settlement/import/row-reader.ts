import { OnceperError } from '../../../kernel/error.ts';
import { FileFault } from './file-fault.ts';
import type { Refusals } from './refusals.ts';
import type { Field, RowContext, Source, StagedRow } from './source-format.ts';

/** So many wrong rows are another file or another format, and reading the rest of them helps nobody. */
const mostRefused = 100_000;

/**
 * Turns the records of one file into rows: the first is the header, which finds the columns whatever their order; every
 * other is read by the source's format, and refused by its line where it does not fit. Nothing is skipped.
 */
export class RowReader {
  readonly #source: Source;
  readonly #context: RowContext;
  readonly #refusals: Refusals;
  readonly #stage: (row: StagedRow, line: number) => void;
  #columns: ReadonlyMap<string, number> | null = null;
  #width = 0;
  #fields: readonly string[] = [];
  #rows = 0;

  constructor(of: {
    source: Source;
    context: RowContext;
    refusals: Refusals;
    stage: (row: StagedRow, line: number) => void;
  }) {
    this.#source = of.source;
    this.#context = of.context;
    this.#refusals = of.refusals;
    this.#stage = of.stage;
  }

  /** Records after the header, refused ones included. */
  get rows(): number {
    return this.#rows;
  }

  /** True once the header was read; false for a file without any record. */
  get hasHeader(): boolean {
    return this.#columns !== null;
  }

  /** Takes a record; throws FileFault for a header that is not the source's and for too many wrong rows, OnceperError never. */
  take(fields: readonly string[], line: number): void {
    if (this.#columns === null) {
      this.#columns = columnsOf(this.#source, fields, line);
      this.#width = fields.length;
      return;
    }
    if (this.#refusals.total >= mostRefused) {
      throw new FileFault(line, `more than ${mostRefused} rows are wrong; from here on they were not read`);
    }
    this.#rows += 1;
    if (fields.length !== this.#width) {
      this.#refusals.add(line, `${fields.length} fields where the header has ${this.#width}`);
      return;
    }
    this.#fields = fields;
    this.#read(line);
  }

  #read(line: number): void {
    try {
      this.#stage(this.#source.read(this.#field, this.#context), line);
    } catch (error) {
      if (!(error instanceof OnceperError)) throw error;
      this.#refusals.add(line, error.message);
    }
  }

  readonly #field: Field = (column) => {
    const index = this.#columns?.get(column);
    return index === undefined ? null : (this.#fields[index] ?? null);
  };
}

function columnsOf(source: Source, header: readonly string[], line: number): ReadonlyMap<string, number> {
  const columns = new Map<string, number>();
  for (const [index, text] of header.entries()) {
    const column = text.trim();
    if (columns.has(column)) throw new FileFault(line, `the header names the column '${column}' twice`);
    columns.set(column, index);
  }
  const missing = source.required.filter((column) => !columns.has(column));
  const others = [...columns.keys()].filter(
    (column) => !source.required.includes(column) && !source.optional.includes(column),
  );
  if (missing.length > 0) throw new FileFault(line, `the header lacks ${quoted(missing)}${formatHint(source)}`);
  if (others.length > 0 && !source.allowsOthers) {
    throw new FileFault(line, `the header has ${quoted(others)}${formatHint(source)}`);
  }
  return columns;
}

function formatHint(source: Source): string {
  const optional = source.optional.length === 0 ? '' : `, optionally ${source.optional.join(', ')}`;
  return `; a file of source ${source.name} has the columns ${source.required.join(', ')}${optional}, separated by commas`;
}

function quoted(columns: readonly string[]): string {
  return columns.map((column) => `'${column}'`).join(', ');
}
