import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/base/seeded-random.js';
import { type EndpointPicker, type EndpointView, powerOfTwoChoices } from '../../../src/index.js';
import { fakeItem } from '../../support/fake-item.js';
import { fakeEndpoint } from '../../support/fake-pool.js';

type Mutable = { -readonly [K in keyof EndpointView]: EndpointView[K] };

function idle(count: number, weightOf: (index: number) => number = () => 1): Mutable[] {
  return Array.from({ length: count }, (_, index) => fakeEndpoint(`e${index}`, { weight: weightOf(index) }));
}

/** Sends requests that never end. */
function fill(picker: EndpointPicker, endpoints: readonly Mutable[], requests: number): void {
  for (let i = 0; i < requests; i++) {
    const chosen = picker.pick(endpoints, fakeItem(), 0) as Mutable;
    chosen.inFlightRequests++;
  }
}

/** Answers with these numbers in turn. */
function numbers(...given: number[]): () => number {
  return () => given.shift() ?? Number.NaN;
}

describe('powerOfTwoChoices', () => {
  it('draws two different endpoints by weight, and picks the less loaded', () => {
    const [a, b, c] = idle(3, (index) => [2, 1, 1][index] as number) as [Mutable, Mutable, Mutable];
    a.inFlightRequests = 12;
    b.inFlightRequests = 3;
    c.inFlightRequests = 5;
    const pick = (...drawn: number[]) =>
      powerOfTwoChoices({ random: numbers(...drawn) }).pick([a, b, c], fakeItem(), 0)?.id;
    // Of a weight of 4, a has the first half; without it, b has the first half of what is left.
    expect(pick(0.49, 0.49)).toBe('e1');
    expect(pick(0.49, 0.5)).toBe('e2');
    expect(pick(0.5, 0.1)).toBe('e1');
    // Without b, a has two thirds.
    expect(pick(0.74, 0.66)).toBe('e1');
    expect(pick(0.75, 0.67)).toBe('e1');
    expect(pick(0.99, 0)).toBe('e2');
  });

  it('measures load by weight', () => {
    const small = fakeEndpoint('small', { weight: 1, inFlightRequests: 2 });
    const large = fakeEndpoint('large', { weight: 4, inFlightRequests: 7 });
    expect(powerOfTwoChoices().pick([small, large], fakeItem(), 0)).toBe(large);
  });

  it('never picks the endpoint that is loaded most', () => {
    const endpoints = idle(10);
    const picker = powerOfTwoChoices({ seed: 3 });
    for (const [index, endpoint] of endpoints.entries()) endpoint.inFlightRequests = index;
    const picks = Array.from({ length: 5000 }, () =>
      endpoints.indexOf(picker.pick(endpoints, fakeItem(), 0) as Mutable),
    );
    const counts = endpoints.map((_, index) => picks.filter((pick) => pick === index).length);
    expect(counts[9]).toBe(0);
    // Of the 45 pairs, 9 − i have endpoint i as the less loaded.
    for (const [index, count] of counts.entries())
      expect(Math.abs(count - (5000 * (9 - index)) / 45)).toBeLessThan(100);
  });

  it('keeps the longest queue of n requests on n endpoints within ln ln n / ln 2 + 2, which one choice exceeds', () => {
    const n = 2000;
    const bound = Math.log(Math.log(n)) / Math.LN2 + 2;
    const longest = (picker: EndpointPicker): number => {
      const endpoints = idle(n);
      fill(picker, endpoints, n);
      return Math.max(...endpoints.map(({ inFlightRequests }) => inFlightRequests));
    };
    const random = seededRandom(5);
    const oneChoice: EndpointPicker = { type: 'one', pick: (all) => all[Math.floor(random() * all.length)] };
    expect(longest(powerOfTwoChoices({ seed: 5 }))).toBeLessThanOrEqual(bound);
    expect(longest(oneChoice)).toBeGreaterThan(bound);
  });

  it('fills endpoints by their weight', () => {
    const endpoints = idle(4, (index) => index + 1);
    fill(powerOfTwoChoices(), endpoints, 1000);
    for (const { inFlightRequests, weight } of endpoints)
      expect(Math.abs(inFlightRequests - 100 * weight)).toBeLessThan(10);
  });

  it('picks the same with the same seed, and otherwise with another', () => {
    const picksOf = (seed: number | undefined): string[] => {
      const picker = powerOfTwoChoices({ seed });
      const endpoints = idle(8);
      return Array.from({ length: 30 }, () => picker.pick(endpoints, fakeItem(), 0)?.id ?? '');
    };
    expect(picksOf(1)).toEqual(picksOf(undefined));
    expect(picksOf(2)).not.toEqual(picksOf(1));
  });

  it('picks the only endpoint there is, and one of several whatever the source answers', () => {
    const [only] = idle(1) as [Mutable];
    expect(powerOfTwoChoices().pick([only], fakeItem(), 0)).toBe(only);
    for (const number of [Number.NaN, 1, 7, -1]) {
      const endpoints = idle(3);
      expect(endpoints).toContain(powerOfTwoChoices({ random: () => number }).pick(endpoints, fakeItem(), 0));
    }
  });

  it('rejects options that cannot be', () => {
    expect(() => powerOfTwoChoices({ seed: 0.5, random: 3 as never })).toThrow(/2 problems/);
  });
});
