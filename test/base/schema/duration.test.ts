import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDuration } from '../../../src/base/schema/duration.js';

describe('parseDuration', () => {
  it.each([
    ['0', 0],
    ['-0', 0],
    ['0s', 0],
    ['60s', 60_000],
    ['200ms', 200],
    ['1m30s', 90_000],
    ['1h1m1s1ms', 3_661_001],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['5.s', 5000],
    ['1us', 0.001],
    ['1µs', 0.001],
    ['1μs', 0.001],
    ['1ns', 1e-6],
    ['0.5ns', 0],
    ['+2s', 2000],
    ['-1m', -60_000],
    ['1s1h', 3_601_000],
  ])('reads %s as %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it('computes fractions exactly', () => {
    expect(parseDuration('4.35s')).toBe(4350);
    expect(parseDuration('1.001s')).toBe(1001);
    expect(parseDuration('0.07m')).toBe(4200);
  });

  it('takes a number as milliseconds', () => {
    expect(parseDuration(1500)).toBe(1500);
    expect(parseDuration(0.5)).toBe(0.5);
    expect(parseDuration(-1)).toBe(-1);
    expect(parseDuration(Infinity)).toBe(Infinity);
  });

  it.each([
    '',
    '5',
    's',
    '1 s',
    '1h2',
    '1d',
    '1e3s',
    '1S',
    'Infinity',
    '.s',
    '1..5s',
    '--1s',
    '1s-1s',
    ' 1s',
    `${'9'.repeat(60)}s`,
  ])('does not read %j as a duration', (text) => {
    expect(parseDuration(text)).toBeNaN();
  });

  it('knows no duration beyond 292 years, as in Go', () => {
    expect(parseDuration('2562047h47m16.854775807s')).toBe(9223372036854.775);
    expect(parseDuration('2562047h47m16.854775808s')).toBeNaN();
  });

  it('adds up its parts', () => {
    const part = fc.nat({ max: 10_000 });
    fc.assert(
      fc.property(part, part, part, part, (hours, minutes, seconds, ms) => {
        const sum = hours * 3_600_000 + minutes * 60_000 + seconds * 1000 + ms;
        expect(parseDuration(`${hours}h${minutes}m${seconds}s${ms}ms`)).toBe(sum);
        expect(parseDuration(`-${hours}h${minutes}m${seconds}s${ms}ms`) + sum).toBe(0);
      }),
    );
  });
});
