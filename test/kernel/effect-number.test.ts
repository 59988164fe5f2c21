import fc from 'fast-check';
import { expect, it } from 'vitest';
import { effectNumber, parseEffectNumber } from '../../src/kernel/effect-number.ts';
import { businessKey } from '../../src/kernel/key.ts';

const parts = fc.record({
  key: fc
    .tuple(fc.constantFrom('2026-09', '2026-W39', 'FY2027-P03'), fc.constantFrom(null, '1', '12'))
    .map(([period, adj]) => businessKey('settlement', period, adj)),
  subject: fc.oneof(fc.stringMatching(/^[a-z0-9-]{1,24}$/), fc.constantFrom('adj-1', 'adj-12')),
  currency: fc.constantFrom('GBP', 'JPY', 'KWD'),
  effect: fc.constantFrom('payout', 'payout:reversal', 'adj-1'),
});

it('writes key, subject, currency and effect', () => {
  const number = effectNumber({ key: 'settlement:2026-09', subject: 'm-1001', currency: 'GBP', effect: 'payout' });
  expect(number).toBe('settlement:2026-09:m-1001:GBP:payout');
});

it('gives every number back, taken apart, also where a subject is called like an adjustment', () => {
  fc.assert(
    fc.property(parts, (effect) => {
      expect(parseEffectNumber(effectNumber(effect))).toEqual(effect);
    }),
  );
});

it('tells a currency apart: the same payout in another currency has another number', () => {
  fc.assert(
    fc.property(parts, parts, (a, b) => {
      const isSame = a.key === b.key && a.subject === b.subject && a.currency === b.currency && a.effect === b.effect;
      expect(effectNumber(a) === effectNumber(b)).toBe(isSame);
    }),
  );
});

it.each([
  ['settlement:2026-09:m-1001:GBP', 'malformed_effect_number'],
  ['settlement:2026-09:m-1001:gbp:payout', 'malformed_effect_number'],
  ['settlement:2026-09:m-1001:GBP:Payout', 'malformed_effect_number'],
  ['settlement:2026-09:m-1001:GBP:payout:', 'malformed_effect_number'],
  ['settlement:2026-09:m-1001', 'malformed_effect_number'],
  ['settlement:2026-09', 'malformed_effect_number'],
  ['settlement:2026-09:M-1001:GBP:payout', 'malformed_subject'],
  ['settlement:2026-09:retry1:m-1001:GBP:payout', 'malformed_effect_number'],
  ['settlement:2026-9:m-1001:GBP:payout', 'malformed_key'],
  ['', 'malformed_key'],
])('refuses %j as %s', (text, code) => {
  expect(() => parseEffectNumber(text)).toThrow(expect.objectContaining({ code }));
});

it('makes no number of parts outside their form', () => {
  const good = { key: 'settlement:2026-09', subject: 'm-1', currency: 'GBP', effect: 'payout' };
  const refused = (change: Partial<typeof good>, code: string) =>
    expect(() => effectNumber({ ...good, ...change })).toThrow(expect.objectContaining({ code }));
  refused({ key: 'settlement' }, 'malformed_key');
  refused({ subject: 'Müller' }, 'malformed_subject');
  refused({ currency: 'gbp' }, 'malformed_effect_number');
  refused({ effect: '' }, 'malformed_effect_number');
});
