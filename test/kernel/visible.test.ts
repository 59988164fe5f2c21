import { expect, test } from 'vitest';
import { visible, visibleJson, visibleLine } from '../../src/kernel/visible.ts';

/** What a terminal obeys or hides, and how it is written out. */
const HIDDEN: readonly (readonly [string, string, string])[] = [
  ['an escape', '\u001b', '\\u{1b}'],
  ['a carriage return', '\r', '\\u{d}'],
  ['NUL', '\u0000', '\\u{0}'],
  ['DEL', '\u007f', '\\u{7f}'],
  ['a C1 control', '\u009b', '\\u{9b}'],
  ['an override of direction', '\u202e', '\\u{202e}'],
  ['an isolate of direction', '\u2066', '\\u{2066}'],
  ['a mark of direction', '\u200f', '\\u{200f}'],
  ['the Arabic letter mark', '\u061c', '\\u{61c}'],
  ['a line separator', '\u2028', '\\u{2028}'],
  ['a space without width', '\u200b', '\\u{200b}'],
  ['a byte order mark', '\ufeff', '\\u{feff}'],
  ['a soft hyphen', '\u00ad', '\\u{ad}'],
  ['a filler', '\u3164', '\\u{3164}'],
  ['a tag beyond 16 bits', '\u{e0041}', '\\u{e0041}'],
  ['half a surrogate pair', '\ud800', '\\u{d800}'],
];

test.each(HIDDEN)('%s is written out', (_, hidden, written) => {
  expect(visible(`a${hidden}b`)).toBe(`a${written}b`);
  expect(visibleLine(`a${hidden}b`)).toBe(`a${written}b`);
  const json = visibleJson(JSON.stringify({ text: `a${hidden}b` }));
  expect(json).not.toContain(hidden);
  expect(JSON.parse(json)).toEqual({ text: `a${hidden}b` });
});

test('text that shows as itself is left as it is', () => {
  const text = 'Zoë’s Bücher, 北京 café, مقهى, 😀, £1,250.00 — "a\\b"';
  expect(visible(text)).toBe(text);
  expect(visibleJson(text)).toBe(text);
});

test('newlines and tabs stay in a text, and begin no other line in a text of one', () => {
  expect(visible('a\n\tb')).toBe('a\n\tb');
  expect(visibleLine('a\n\tb')).toBe('a\\u{a}\\u{9}b');
});
