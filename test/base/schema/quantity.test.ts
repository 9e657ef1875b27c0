import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseQuantity } from '../../../src/base/schema/quantity.js';

describe('parseQuantity', () => {
  it.each([
    ['0', 0],
    ['100', 100],
    ['1k', 1000],
    ['500M', 500_000_000],
    ['1Ki', 1024],
    ['500Mi', 524_288_000],
    ['1Gi', 1_073_741_824],
    ['10Gi', 10_737_418_240],
    ['1T', 1e12],
    ['7Pi', 7 * 2 ** 50],
    ['1e3', 1000],
    ['1E3', 1000],
    ['2e-1', 1],
    ['+3', 3],
    ['5.', 5],
    ['.5k', 500],
  ])('reads %s as %d', (text, value) => {
    expect(parseQuantity(text)).toBe(value);
  });

  it.each([
    ['0.5', 1],
    ['1500m', 2],
    ['-1500m', -2],
    ['1u', 1],
    ['100n', 1],
    ['0.0001Ki', 1],
    ['0n', 0],
  ])('rounds %s away from zero to %d', (text, value) => {
    expect(parseQuantity(text)).toBe(value);
  });

  it('computes fractions exactly: 0.1Gi is 107374182.4, rounded up', () => {
    expect(parseQuantity('0.1Gi')).toBe(107_374_183);
    expect(parseQuantity('1.1k')).toBe(1100);
    expect(parseQuantity('8.7M')).toBe(8_700_000);
    expect(parseQuantity('9007199254740991')).toBe(Number.MAX_SAFE_INTEGER);
    expect(parseQuantity('7.999999999999999Pi')).toBe(9007199254740991);
  });

  it.each(['9007199254740992', '8Pi', '1E', '9Ei', '1e999'])('shows that %s is beyond the safe integers', (text) => {
    expect(parseQuantity(text)).toBeGreaterThan(Number.MAX_SAFE_INTEGER);
    expect(parseQuantity(text)).not.toBe(Infinity);
  });

  it('returns negative quantities as they are, so that the caller can complain about them', () => {
    expect(parseQuantity('-5')).toBe(-5);
    expect(parseQuantity(-5)).toBe(-5);
    expect(parseQuantity('-0')).toBe(0);
    expect(Object.is(parseQuantity(-0), 0)).toBe(true);
  });

  it('takes integers and Infinity as they are', () => {
    expect(parseQuantity(42)).toBe(42);
    expect(parseQuantity(Infinity)).toBe(Infinity);
  });

  it.each([
    '',
    ' ',
    '.',
    'k',
    '1 k',
    '1kk',
    '1K',
    '1ki',
    '0x10',
    '1,000',
    '1_000',
    'Infinity',
    'NaN',
    '1e',
    '1e1.5',
    '--1',
    '1kb',
    '9'.repeat(41),
  ])('does not read %j as a quantity', (text) => {
    expect(parseQuantity(text)).toBeNaN();
  });

  it.each([1.5, Number.NaN, -Infinity])('does not read the number %d as a quantity', (value) => {
    expect(parseQuantity(value)).toBeNaN();
  });

  it('reads back what it was written from, in every suffix that divides it', () => {
    const suffixes: [string, number][] = [
      ['', 1],
      ['k', 1e3],
      ['M', 1e6],
      ['G', 1e9],
      ['Ki', 2 ** 10],
      ['Mi', 2 ** 20],
      ['Gi', 2 ** 30],
    ];
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 22 }), fc.constantFrom(...suffixes), (count, [suffix, factor]) => {
        expect(parseQuantity(`${count}${suffix}`)).toBe(count * factor);
        expect(parseQuantity(`-${count}${suffix}`) + count * factor).toBe(0);
      }),
    );
  });

  it('agrees with exact fractions for any number of decimals', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 12n }), fc.integer({ min: 1, max: 9 }), (digits, places) => {
        const text = String(digits).padStart(places + 1, '0');
        const decimal = `${text.slice(0, -places)}.${text.slice(-places)}`;
        const scale = 10n ** BigInt(places);
        expect(parseQuantity(`${decimal}Ki`)).toBe(Number((digits * 1024n + scale - 1n) / scale));
      }),
    );
  });
});
