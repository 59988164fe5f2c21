const COMMA = 0x2c;
const QUOTE = 0x22;

/** Longer lines are the parser's, which bounds a record by its bytes; a character has four of them at most. */
const LONGEST = 16 * 1_024;

/**
 * The fields of the line from `start` to `stop` of a text, its line end excluded, where each has no quote in it or is quoted
 * from end to end, quotes inside written twice. Null where the line is another: one that is malformed, or the beginning of a
 * record of several lines.
 */
export function simpleFields(text: string, start: number, stop: number): string[] | null {
  if (stop - start > LONGEST) return null;
  // A search in the whole text would run over all the lines after this one, and for each of them again.
  const line = text.slice(start, stop);
  const fields: string[] = [];
  for (let at = 0; ; ) {
    const isQuoted = line.charCodeAt(at) === QUOTE;
    const end = isQuoted ? afterQuotes(line, at) : commaOrEnd(line, at);
    if (end > line.length) return null;
    const field = isQuoted ? line.slice(at + 1, end - 1).replaceAll('""', '"') : line.slice(at, end);
    if (!isQuoted && field.includes('"')) return null;
    fields.push(field);
    if (end === line.length) return fields;
    if (line.charCodeAt(end) !== COMMA) return null;
    at = end + 1;
  }
}

/** The place after the quote that closes the one at `at`; beyond any line where none does. */
function afterQuotes(line: string, at: number): number {
  for (let quote = line.indexOf('"', at + 1); quote !== -1; quote = line.indexOf('"', quote + 2)) {
    if (line.charCodeAt(quote + 1) !== QUOTE) return quote + 1;
  }
  return Number.POSITIVE_INFINITY;
}

function commaOrEnd(line: string, at: number): number {
  const comma = line.indexOf(',', at);
  return comma === -1 ? line.length : comma;
}
