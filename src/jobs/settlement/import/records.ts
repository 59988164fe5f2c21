import { finished } from 'node:stream/promises';
import { type CsvError, type Parser, parse } from 'csv-parse';
import { codeOf } from '../../../kernel/error.ts';
import { FileFault } from './file-fault.ts';
import { longestRowBytes } from './whole-lines.ts';

/** Receives the fields of a record and the line on which it starts. */
export type TakeRecord = (fields: readonly string[], line: number) => void;

const faults: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote that opens in this row is never closed: the file may be cut',
  INVALID_OPENING_QUOTE: 'a quote in the middle of a field: quote the whole field and write the inner quote twice',
  CSV_INVALID_CLOSING_QUOTE: 'text after a closing quote: write a quote inside a quoted field twice',
  CSV_MAX_RECORD_SIZE: `a row longer than ${longestRowBytes} bytes: a closing quote may be missing`,
};

/**
 * Strict CSV (RFC 4180) fed block by block: commas, LF or CRLF, a BOM, quoted fields with quotes, commas and line ends
 * inside. Blank lines are no records. `take` is called in the parser's own turn, record by record, so that a fault further
 * on in the same block loses none before it. Rows of another length than the header are the taker's to refuse.
 */
export class Records {
  readonly #parser: Parser;
  #line = 1;

  constructor(take: TakeRecord) {
    this.#parser = parse({
      bom: true,
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      max_record_size: longestRowBytes,
      on_record: (fields: string[]) => {
        const line = this.#line;
        this.#line += 1 + lineEndsInside(fields);
        const isBlank = fields.length === 1 && fields[0] === '';
        if (!isBlank) take(fields, line);
        return null;
      },
    });
    this.#parser.on('error', () => undefined);
    this.#parser.resume();
  }

  /** Parses a block of whole lines; throws FileFault where the CSV breaks. */
  async feed(block: Buffer): Promise<void> {
    await this.#faulty(
      new Promise<void>((resolve, reject) => {
        this.#parser.write(block, (error) => (error ? reject(error) : resolve()));
      }),
    );
  }

  /** Ends the file; throws FileFault for a quote that is still open. */
  async end(): Promise<void> {
    this.#parser.end();
    await this.#faulty(finished(this.#parser));
  }

  async #faulty(step: Promise<void>): Promise<void> {
    try {
      await step;
    } catch (error) {
      const reason = isCsvError(error) ? faults[error.code] : undefined;
      if (reason === undefined) throw error;
      throw new FileFault(this.#line, `${reason}; the rows after it were not read`);
    }
  }
}

/** The parser counts a CRLF inside quotes twice, so lines are counted here. */
function lineEndsInside(fields: readonly string[]): number {
  let count = 0;
  for (const field of fields) {
    for (let at = field.indexOf('\n'); at !== -1; at = field.indexOf('\n', at + 1)) count += 1;
  }
  return count;
}

function isCsvError(error: unknown): error is CsvError {
  const code = codeOf(error);
  return error instanceof Error && code !== null && Object.hasOwn(faults, code);
}
