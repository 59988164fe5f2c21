import { OnceperError } from '../../../kernel/error.ts';
import { isPlainText } from '../../../kernel/plain-text.ts';

/** An index entry of PostgreSQL ends at 2,704 bytes, a counterparty's idempotency number often at 255 characters. */
const longestName = 120;

/**
 * A number in scientific notation, as spreadsheets write a long one: 2.02608E+15, 1,23E+4, 1E5. Its other digits are lost, so that many
 * ids become one. Without sign and decimals only one digit before a small exponent is taken for it: 123e4567 is an id in hex.
 */
const shortenedNumber = /^[+-]?(?:\d+(?:[.,]\d+)?e[+-]\d+|\d+[.,]\d+e\d+|\de\d{1,3})$/i;

/**
 * A text that names a transaction or a merchant, unchanged. Throws OnceperError `malformed_name` where it is empty, has blanks
 * around it (another export of the same row would not), is too long to become part of a number, is a number that a spreadsheet
 * shortened, or holds characters that a terminal or a page obeys instead of showing them.
 */
export function checkName(column: string, text: string): string {
  const reason = faultOf(text);
  if (reason === null) return text;
  throw new OnceperError({
    code: 'malformed_name',
    message: `${column} ${reason}`,
    remedy: 'correct the row at its source',
    at: text,
  });
}

function faultOf(text: string): string | null {
  if (text === '') return 'is empty';
  if (!isPlainText(text)) return 'holds control characters, or bytes that were no text';
  if (shortenedNumber.test(text)) {
    return `'${text.slice(0, 40)}' is a number as a spreadsheet shortens it, so its digits are lost: export it again, with that column as text`;
  }
  if (text.length <= longestName && text.trim() === text) return null;
  return `'${text.slice(0, 40)}' has blanks around it or is longer than ${longestName}`;
}
