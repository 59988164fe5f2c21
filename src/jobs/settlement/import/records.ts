import { finished } from 'node:stream/promises';
import { type CsvError, type Parser, parse } from 'csv-parse';
import { codeOf } from '../../../kernel/error.ts';
import { FileFault } from './file-fault.ts';
import { simpleFields } from './simple-fields.ts';
import { longestRowBytes } from './whole-lines.ts';

/** More fields than any format has columns; rows of them cost time to take apart and are refused all the same. */
const mostFields = 1_000;

/** Blank lines are no records, so that nobody refuses them: a file of nothing else would be read to its end. */
const mostBlank = 10_000;

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
 * inside. Blank lines are no records. `take` is called record by record, in order, so that a fault further on in the same
 * block loses none before it. Rows of another length than the header are the taker's to refuse.
 *
 * Lines that are a record each never reach the parser, which looks at each character: 8 µs for a row of six fields where
 * those take 1. From the first other line on the block is the parser's, and so is all that follows
 * until a block ends outside quotes.
 */
export class Records {
  readonly #take: TakeRecord;
  #parser: Parser | null = null;
  #isInQuotes = false;
  #line = 1;
  #blank = 0;

  constructor(take: TakeRecord) {
    this.#take = take;
  }

  /** Parses a block of whole lines; throws FileFault where the CSV breaks. */
  async feed(block: Buffer): Promise<void> {
    let rest: Buffer | string = block;
    if (this.#parser === null && this.#line === 1) {
      // By itself, for it may begin with a mark: the parser takes a tenth of a millisecond for a row of another length.
      const header = block.subarray(0, block.indexOf('\n') + 1);
      await this.#parse(header);
      rest = block.subarray(header.length);
    }
    if (this.#parser === null) rest = this.#takeSimple(rest.toString());
    await this.#parse(rest);
  }

  async #parse(rest: Buffer | string): Promise<void> {
    if (rest.length === 0) return;
    this.#parser ??= this.#open();
    const parser = this.#parser;
    // In CSV that the parser accepts, a quote inside quotes is two: only an open field makes the number odd.
    this.#isInQuotes = (count(rest, '"') % 2 === 1) !== this.#isInQuotes;
    await this.#faulty(
      new Promise<void>((resolve, reject) => {
        parser.write(rest, (error) => (error ? reject(error) : resolve()));
      }),
    );
    // The parser keeps back what it can't decide without the next character; its end lets go of that.
    if (!this.#isInQuotes) await this.end();
  }

  /** Ends the file; throws FileFault for a quote that is still open. */
  async end(): Promise<void> {
    const parser = this.#parser;
    if (parser === null) return;
    this.#parser = null;
    parser.end();
    await this.#faulty(finished(parser));
  }

  #open(): Parser {
    const parser = parse({
      // A mark inside the file is a character like any other.
      bom: this.#line === 1,
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      max_record_size: longestRowBytes,
      on_record: (fields: string[]) => {
        this.#record(fields, 1 + fields.reduce((lines, field) => lines + count(field, '\n'), 0));
        return null;
      },
    });
    parser.on('error', () => undefined);
    return parser.resume();
  }

  /** Takes the simple lines that a block begins with; returns the others. */
  #takeSimple(text: string): string {
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      const fields = simpleFields(text, start, text[end - 1] === '\r' && end > start ? end - 1 : end);
      if (fields === null) break;
      this.#record(fields, 1);
      start = end + 1;
    }
    return text.slice(start);
  }

  #record(fields: readonly string[], lines: number): void {
    const line = this.#line;
    if (fields.length > mostFields) {
      throw new FileFault(line, `a row of more than ${mostFields} fields; the rows after it were not read`);
    }
    this.#line += lines;
    if (fields.length > 1 || fields[0] !== '') return this.#take(fields, line);
    this.#blank += 1;
    if (this.#blank > mostBlank) {
      throw new FileFault(line, `more than ${mostBlank} blank lines; from here on they were not read`);
    }
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

/** The parser counts a CRLF inside quotes twice, so lines are counted here, by their LF. */
function count(text: Buffer | string, character: string): number {
  let found = 0;
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) found += 1;
  return found;
}

function isCsvError(error: unknown): error is CsvError {
  const code = codeOf(error);
  return error instanceof Error && code !== null && Object.hasOwn(faults, code);
}
