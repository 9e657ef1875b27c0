import { describe, expect, it } from 'vitest';
import { closest, didYouMean } from '../../../src/base/faults/did-you-mean.js';

const keys = ['maxRequests', 'maxBytes', 'limits', 'defaultRequestTtl'];

describe('closest', () => {
  it.each([
    ['maxRequest', 'maxRequests'],
    ['maxrequests', 'maxRequests'],
    ['defaultRequestTTL', 'defaultRequestTtl'],
    ['limts', 'limits'],
    ['maxByets', 'maxBytes'],
    ['default', 'defaultRequestTtl'],
  ])('finds what %s was meant to be', (word, meant) => {
    expect(closest(word, keys)).toBe(meant);
  });

  it.each(['', 'li', 'timeout', 'max', 'x'.repeat(100)])('has no idea what %j was meant to be', (word) => {
    expect(closest(word, keys)).toBeUndefined();
  });
});

describe('didYouMean', () => {
  it('asks, or says nothing', () => {
    expect(didYouMean('limit', keys)).toBe(' (did you mean "limits"?)');
    expect(didYouMean('timeout', keys)).toBe('');
  });
});
