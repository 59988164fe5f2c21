/**
 * What does not show as itself: control characters, which a terminal obeys; format characters, which turn text round (bidi) or
 * take no room; separators of lines; halves of surrogate pairs.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Text with every character that a terminal would obey or hide written out, `\u{1b}`; newlines and tabs stay. */
export function visible(text: string): string {
  return text.replaceAll(HIDDEN, (one) => (one === '\n' || one === '\t' ? one : writtenOut(one)));
}

/** The same, with newlines and tabs written out too: others' text can't begin a line that looks like ours. */
export function visibleLine(text: string): string {
  return text.replaceAll(HIDDEN, writtenOut);
}

/** The same for a text that is JSON and stays the same JSON: `\u001b`. JSON's own writer escapes only the first 32. */
export function visibleJson(json: string): string {
  return json.replaceAll(HIDDEN, (one) => (one === '\n' ? one : unitsOf(one)));
}

function writtenOut(one: string): string {
  return `\\u{${one.codePointAt(0)?.toString(16) ?? ''}}`;
}

/** JSON writes a character beyond 16 bits as two. */
function unitsOf(one: string): string {
  return one
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}
