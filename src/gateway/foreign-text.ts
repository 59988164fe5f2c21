import { z } from 'zod';
import { isPlainText } from '../kernel/plain-text.ts';

/** As long as a number may be; an index entry of PostgreSQL ends at 2,704 bytes. */
const LONGEST = 255;

/** True for a text of others that may enter as it is: plain, and 1 to `longest` characters of it. */
export function isForeignText(text: string, longest = LONGEST): boolean {
  return text !== '' && text.length <= longest && isPlainText(text);
}

/**
 * The one door for text that others wrote and that is kept: ids, references, statuses, types. What may not enter is refused
 * whole and never mended, for two ids that are cleaned could become the same one.
 */
export function foreignText(longest = LONGEST): z.ZodType<string> {
  return z.string().refine((text) => isForeignText(text, longest));
}
