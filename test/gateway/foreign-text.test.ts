import { expect, test } from 'vitest';
import { isForeignText } from '../../src/gateway/foreign-text.ts';

test.each([
  ['a NUL', 'tr_\0'],
  ['an escape sequence', 'tr_\u001b[2J'],
  ['a line end', 'tr_1\r\nOK'],
  ['a control character of the second set', 'tr_\u0085'],
  ['a line separator', 'tr_\u2028'],
  ['what turns the direction of writing', 'tr_\u202e1'],
  ['half a character', 'tr_\ud800'],
  ['what was decoded loosely', 'tr_\ufffd'],
  ['nothing', ''],
  ['256 characters', 'x'.repeat(256)],
])('a text with %s does not enter', (_, text) => {
  expect(isForeignText(text)).toBe(false);
});

test('any other text enters as it is', () => {
  for (const text of ['tr_1', 'Überweisung №7 – 转账', '🏦', 'x'.repeat(255)]) expect(isForeignText(text)).toBe(true);
});
