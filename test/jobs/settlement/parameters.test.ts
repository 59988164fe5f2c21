import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parseRule } from '../../../src/jobs/rule.ts';
import { checkOverrides } from '../../../src/jobs/settlement/overrides.ts';
import { parseParameters } from '../../../src/jobs/settlement/parameters.ts';
import { codeOf } from '../../../src/kernel/error.ts';

function faultOf(parameters: unknown): { code: string | null; message: string } {
  try {
    parseParameters(parameters);
  } catch (error) {
    return { code: codeOf(error), message: error instanceof Error ? error.message : '' };
  }
  throw new Error('the parameters were accepted');
}

it('fees and minimum are read per currency, in minor units', () => {
  const { currencies } = parseParameters({
    fees: { GBP: { basisPoints: 150, fixed: '20' }, JPY: { basisPoints: 0, fixed: '0' } },
    minimum: { GBP: '100' },
  });
  expect(currencies).toEqual([
    { currency: 'GBP', basisPoints: 150n, fixed: 20n, minimum: 100n },
    { currency: 'JPY', basisPoints: 0n, fixed: 0n, minimum: 0n },
  ]);
});

it.each([
  ['a currency that ISO does not list', { fees: { GBR: { basisPoints: 1, fixed: '0' } } }, /fees\.GBR.*ISO 4217/],
  ['a currency in small letters', { fees: { gbp: { basisPoints: 1, fixed: '0' } } }, /fees\.gbp/],
  ['a fixed fee that is a number', { fees: { GBP: { basisPoints: 1, fixed: 20 } } }, /fees\.GBP\.fixed/],
  ['a fixed fee with decimals', { fees: { GBP: { basisPoints: 1, fixed: '0.20' } } }, /fees\.GBP\.fixed.*minor units/],
  ['a fee above the sale', { fees: { GBP: { basisPoints: 10_001, fixed: '0' } } }, /fees\.GBP\.basisPoints/],
  ['half a basis point', { fees: { GBP: { basisPoints: 1.5, fixed: '0' } } }, /fees\.GBP\.basisPoints/],
  ['a minimum without fees', { fees: {}, minimum: { GBP: '1' } }, /minimum\.GBP.*no fees/],
  ['more than a column holds', { fees: { GBP: { basisPoints: 1, fixed: '9223372036854775808' } } }, /larger/],
  ['a name that is none of the rule', { fees: {}, defaultFee: '1' }, /defaultFee/],
  ['nothing at all', undefined, /parameters/],
])('a rule with %s is refused by the name of the field', (_case, parameters, message) => {
  expect(faultOf(parameters)).toEqual({ code: 'malformed_rule', message: expect.stringMatching(message) });
});

it.each(['rules/settlement.json', 'rules/birmingham.json'])('the committed %s parses', (file) => {
  const rule = parseRule(JSON.parse(readFileSync(file, 'utf8')), file);
  expect(rule.job).toBe('settlement');
  expect(parseParameters(rule.parameters).currencies.length).toBeGreaterThan(0);
});

it('the default rule has fees for yen, pounds, euros, dollars and dinars', () => {
  const rule = parseRule(JSON.parse(readFileSync('rules/settlement.json', 'utf8')), 'rules/settlement.json');
  const known = parseParameters(rule.parameters).currencies.map(({ currency }) => currency);
  expect(known).toEqual(expect.arrayContaining(['EUR', 'GBP', 'JPY', 'KWD', 'USD']));
});

it('empty=true and empty=false are the overrides of a settlement run', () => {
  expect(() => checkOverrides({})).not.toThrow();
  expect(() => checkOverrides({ empty: 'true' })).not.toThrow();
  expect(() => checkOverrides({ empty: 'false' })).not.toThrow();
});

it.each([{ empty: 'yes' }, { amount: '1' }])('any other override is refused: %o', (overrides) => {
  expect(() => checkOverrides(overrides)).toThrow(expect.objectContaining({ code: 'unknown_override' }));
});
