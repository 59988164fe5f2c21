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
  const fields: string[] = [];
  for (let at = start; ; ) {
    const isQuoted = at < stop && text.charCodeAt(at) === QUOTE;
    const end = isQuoted ? afterQuotes(text, at) : commaOrStop(text, at, stop);
    if (end > stop) return null;
    const field = isQuoted ? text.slice(at + 1, end - 1).replaceAll('""', '"') : text.slice(at, end);
    if (!isQuoted && field.includes('"')) return null;
    fields.push(field);
    if (end === stop) return fields;
    if (text.charCodeAt(end) !== COMMA) return null;
    at = end + 1;
  }
}

/** The place after the quote that closes the one at `at`; beyond any line where none does. */
function afterQuotes(text: string, at: number): number {
  for (let quote = text.indexOf('"', at + 1); quote !== -1; quote = text.indexOf('"', quote + 2)) {
    if (text.charCodeAt(quote + 1) !== QUOTE) return quote + 1;
  }
  return Number.POSITIVE_INFINITY;
}

function commaOrStop(text: string, at: number, stop: number): number {
  const comma = text.indexOf(',', at);
  return comma === -1 || comma > stop ? stop : comma;
}
