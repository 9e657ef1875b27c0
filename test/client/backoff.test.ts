import { describe, expect, it } from 'vitest';
import { dynamoBackoff, fullJitter } from '../../src/client/index.js';
import { FlowConfigError } from '../../src/index.js';

const bound = (): number => 1;

describe('fullJitter', () => {
  it('doubles its bound with every attempt, up to the longest pause', () => {
    const backoff = fullJitter({ initialMs: 500, maxMs: 3000 });
    expect([0, 1, 2, 3, 4].map((attempt) => backoff(attempt, bound))).toEqual([500, 1000, 2000, 3000, 3000]);
    expect(backoff(5000, bound)).toBe(3000);
  });

  it('spreads pauses from 0 to the bound', () => {
    const backoff = fullJitter({ initialMs: 500, maxMs: 3000 });
    expect([0, 0.25, 0.999].map((value) => backoff(1, () => value))).toEqual([0, 250, 999]);
  });

  it.each([
    { initialMs: 0, maxMs: 1 },
    { initialMs: 1, maxMs: Number.NaN },
    { initialMs: 1 },
    { initialMs: 1, maxMs: 2, jitter: 1 },
  ])('is not made of %j', (options) => {
    expect(() => fullJitter(options as never)).toThrow(FlowConfigError);
  });
});

describe('dynamoBackoff', () => {
  it('waits a power of two and up to a second, and never more than a minute', () => {
    const backoff = dynamoBackoff();
    expect([0, 1, 5, 6].map((attempt) => backoff(attempt, () => 0.5))).toEqual([1500, 2500, 32_500, 60_000]);
  });
});
