import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, it } from 'vitest';
import { isCurrency, minorUnits } from '../../src/kernel/currency.ts';

/** Code and minor units of every entry of ISO's own list one, as published; 'N.A.' where it has none. */
function isoList(): ReadonlyMap<string, string> {
  const file = createRequire(import.meta.url).resolve('currency-codes/iso-4217-list-one.xml');
  const entries = readFileSync(file, 'utf8').matchAll(/<Ccy>(\w{3})<\/Ccy>[^]*?<CcyMnrUnts>([^<]+)</g);
  return new Map([...entries].map(([, code = '', units = '']) => [code, units]));
}

it.each([
  ['JPY', 0],
  ['EUR', 2],
  ['GBP', 2],
  ['KWD', 3],
  ['CLF', 4],
  ['ISK', 0],
  ['HUF', 2],
  ['IDR', 2],
])('keeps %s in %i decimals', (code, digits) => {
  expect(minorUnits(code)).toBe(digits);
  expect(isCurrency(code)).toBe(true);
});

it('has the minor units of the ISO list for every code, and none where the list has none', () => {
  const list = isoList();
  expect(list.size).toBeGreaterThan(170);
  expect(list.get('XAU')).toBe('N.A.');
  const ours = [...list.keys()].map((code) => [code, isCurrency(code) ? String(minorUnits(code)) : 'N.A.']);
  expect(ours).toEqual([...list]);
});

it.each(['XXX', 'XTS', 'XAU', 'ZZZ', 'GB', 'GBPP', '', '£', ' GBP'])('knows no currency %j', (code) => {
  expect(isCurrency(code)).toBe(false);
  expect(() => minorUnits(code)).toThrow(expect.objectContaining({ code: 'unknown_currency', at: code }));
});

it('hints at capitals where only they are missing', () => {
  const hint = expect.objectContaining({ code: 'unknown_currency', remedy: expect.stringContaining('write JPY') });
  expect(() => minorUnits('jpy')).toThrow(hint);
  expect(isCurrency('jpy')).toBe(false);
});
