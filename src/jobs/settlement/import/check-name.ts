import { OnceperError } from '../../../kernel/error.ts';

/** An index entry of PostgreSQL ends at 2,704 bytes, a counterparty's idempotency number often at 255 characters. */
const longestName = 120;

/**
 * A text that names a transaction or a merchant, unchanged. Throws OnceperError `malformed_name` where it is empty, has blanks
 * around it (another export of the same row would not) or is too long to become part of a number.
 */
export function checkName(column: string, text: string): string {
  if (text !== '' && text.length <= longestName && text.trim() === text) return text;
  const reason =
    text === '' ? 'is empty' : `'${text.slice(0, 40)}' has blanks around it or is longer than ${longestName}`;
  throw new OnceperError({
    code: 'malformed_name',
    message: `${column} ${reason}`,
    remedy: 'correct the row at its source',
    at: text,
  });
}
