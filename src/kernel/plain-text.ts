/**
 * Control characters (PostgreSQL keeps no NUL, a terminal obeys the others), lone surrogates and U+FFFD (the text was none,
 * and two of them would become one), line separators, and what turns the direction of writing.
 */
const HARMFUL = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\uFFFD]/u;

/** True for a text that names something and does no harm where it is kept, logged or shown. */
export function isPlainText(text: string): boolean {
  return !HARMFUL.test(text);
}
