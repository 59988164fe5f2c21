import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { minorUnits } from '../../src/kernel/currency.ts';
import { divideHalfEven, fee, formatAmount, parseAmount, sum } from '../../src/kernel/money.ts';

const currency = fc.constantFrom('JPY', 'EUR', 'GBP', 'KWD', 'CLF');
const amount = fc.bigInt({ min: -(2n ** 63n) + 1n, max: 2n ** 63n - 1n });

describe('an amount as text', () => {
  // C40 and C41: the exponent is the currency's, and what a float would make of the product plays no part.
  it.each([
    ['80', 'JPY', 80n],
    ['80.00', 'JPY', 80n],
    ['80.00', 'EUR', 8000n],
    ['80', 'EUR', 8000n],
    ['1.234', 'KWD', 1234n],
    ['1.2345', 'CLF', 12345n],
    ['8.20', 'GBP', 820n],
    ['19.99', 'GBP', 1999n],
    ['4.35', 'EUR', 435n],
    ['64.10', 'EUR', 6410n],
    ['5.1', 'EUR', 510n],
    ['1.000', 'EUR', 100n],
    ['-0.05', 'GBP', -5n],
    ['-0', 'GBP', 0n],
    ['007.50', 'GBP', 750n],
    ['90071992547409.93', 'GBP', 9007199254740993n],
    ['92233720368547758.07', 'GBP', 9223372036854775807n],
  ])('%s %s is %i minor units', (text, code, minor) => {
    expect(parseAmount(text, code)).toBe(minor);
  });

  it.each([
    ['0.5', 'JPY'],
    ['1.005', 'EUR'],
    ['-1.005', 'EUR'],
    ['1.0001', 'KWD'],
    ['80.000000000001', 'JPY'],
  ])('%s %s is refused rather than rounded', (text, code) => {
    expect(() => parseAmount(text, code)).toThrow(expect.objectContaining({ code: 'too_many_decimals', at: text }));
  });

  it.each(['', ' ', '-', '.', '.5', '5.', '1,234.56', '1.234,56', '1 234', '1e3', '+1', '--1', '1-', '0x10', '1_000'])(
    '%j is refused',
    (text) => {
      expect(() => parseAmount(text, 'GBP')).toThrow(expect.objectContaining({ code: 'malformed_amount', at: text }));
    },
  );

  it.each(['Infinity', 'NaN', '٣', '1\n', '£1', '(1.00)', 'null'])('%j is refused too', (text) => {
    expect(() => parseAmount(text, 'GBP')).toThrow(expect.objectContaining({ code: 'malformed_amount' }));
  });

  it('is refused where the ledger could not hold it', () => {
    const refused = expect.objectContaining({ code: 'malformed_amount' });
    expect(() => parseAmount('92233720368547758.08', 'GBP')).toThrow(refused);
    expect(() => parseAmount('9'.repeat(400), 'GBP')).toThrow(refused);
  });

  it.each(['XXX', 'jpy'])('is refused in %s', (code) => {
    expect(() => parseAmount('80', code)).toThrow(expect.objectContaining({ code: 'unknown_currency' }));
    expect(() => formatAmount(80n, code)).toThrow(expect.objectContaining({ code: 'unknown_currency' }));
  });

  it.each([
    [1999n, 'GBP', '19.99'],
    [-5n, 'GBP', '-0.05'],
    [0n, 'GBP', '0.00'],
    [80n, 'JPY', '80'],
    [-80n, 'JPY', '-80'],
    [1n, 'KWD', '0.001'],
  ])('%i in %s is written %s', (minor, code, text) => {
    expect(formatAmount(minor, code)).toBe(text);
  });

  it('is read back from its text, whatever the amount', () => {
    fc.assert(
      fc.property(amount, currency, (minor, code) => {
        const text = formatAmount(minor, code);
        expect(parseAmount(text, code)).toBe(minor);
        expect(text.split('.')[1]?.length ?? 0).toBe(minorUnits(code));
      }),
      { numRuns: 1000 },
    );
  });

  it('is worth the same with zeros after it', () => {
    fc.assert(
      fc.property(amount, currency, fc.nat(10), (minor, code, zeros) => {
        const text = formatAmount(minor, code);
        const longer = `${text.includes('.') ? text : `${text}.0`}${'0'.repeat(zeros)}`;
        expect(parseAmount(longer, code)).toBe(minor);
      }),
    );
  });
});

describe('half to even', () => {
  it.each([
    [5n, 2n, 2n],
    [7n, 2n, 4n],
    [-5n, 2n, -2n],
    [-7n, 2n, -4n],
    [5n, -2n, -2n],
    [1n, 2n, 0n],
    [-1n, 2n, 0n],
    [-3n, 2n, -2n],
    [1n, 3n, 0n],
    [2n, 3n, 1n],
    [-2n, 3n, -1n],
    [0n, 7n, 0n],
  ])('%i / %i is %i', (n, d, quotient) => {
    expect(divideHalfEven(n, d)).toBe(quotient);
  });

  it('is the nearest integer, and the even one of two that are as near', () => {
    const divisor = fc.bigInt({ min: -1000n, max: 1000n }).filter((d) => d !== 0n);
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), divisor, (n, d) => {
        const quotient = divideHalfEven(n, d);
        const distance = (q: bigint): bigint => (n - q * d < 0n ? q * d - n : n - q * d);
        const neighbours = [distance(quotient - 1n), distance(quotient + 1n)];
        expect(neighbours.every((other) => distance(quotient) <= other)).toBe(true);
        if (neighbours.includes(distance(quotient))) expect(quotient % 2n).toBe(0n);
      }),
      { numRuns: 1000 },
    );
  });

  it('does not hide a division by zero', () => {
    expect(() => divideHalfEven(1n, 0n)).toThrow(RangeError);
  });
});

describe('a fee', () => {
  it.each([
    [820n, 290n, 30n, 54n], // 23.78
    [1999n, 290n, 30n, 88n], // 57.971
    [435n, 290n, 30n, 43n], // 12.615
    [6410n, 290n, 30n, 216n], // 185.89
    [50n, 100n, 0n, 0n], // 0.5, a tie
    [150n, 100n, 0n, 2n], // 1.5, a tie
    [250n, 100n, 0n, 2n], // 2.5, a tie
    [0n, 290n, 30n, 30n],
    [12345n, 0n, 0n, 0n],
  ])('of %i at %i basis points and %i is %i', (of, basisPoints, fixed, result) => {
    expect(fee({ amount: of, basisPoints, fixed })).toBe(result);
  });

  it('never differs by more than half a minor unit from the exact one', () => {
    fc.assert(
      fc.property(amount, fc.bigInt({ min: 0n, max: 10_000n }), (of, basisPoints) => {
        const error = fee({ amount: of, basisPoints, fixed: 7n }) * 10_000n - (of * basisPoints + 70_000n);
        expect(error >= -5_000n && error <= 5_000n).toBe(true);
      }),
    );
  });
});

it('sums 10,000 lines of 0.10 to 1000.00 exactly', () => {
  const lines = Array.from({ length: 10_000 }, () => parseAmount('0.10', 'EUR'));
  expect(formatAmount(sum(lines), 'EUR')).toBe('1000.00');
  expect(sum([])).toBe(0n);
});
