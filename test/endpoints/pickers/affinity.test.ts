import { describe, expect, it } from 'vitest';
import type { AffinityOptions } from '../../../src/endpoints/pickers/affinity.js';
import { affinity, type EndpointView, prefixKey } from '../../../src/index.js';
import { Random } from '../../property/random.js';
import { fakeItem } from '../../support/fake-item.js';
import { fakeEndpoint } from '../../support/fake-pool.js';

type Mutable = { -readonly [K in keyof EndpointView]: EndpointView[K] };

const keys: readonly string[] = Array.from({ length: 6000 }, (_, index) => `session-${index}`);

function servers(count: number, weightOf: (index: number) => number = () => 1): Mutable[] {
  return Array.from({ length: count }, (_, index) => fakeEndpoint(`gpu-${index}`, { weight: weightOf(index) }));
}

function about(affinityKey: unknown) {
  return fakeItem({ request: { byteSize: 1, affinityKey } });
}

/** Where each key goes on an idle pool. */
function homes(endpoints: readonly EndpointView[], options: AffinityOptions = {}): string[] {
  const picker = affinity(options);
  return keys.map((key) => picker.pick(endpoints, about(key), 0)?.id ?? '');
}

function countsOf(ids: readonly string[], endpoints: readonly EndpointView[]): number[] {
  return endpoints.map(({ id }) => ids.filter((other) => other === id).length);
}

/** Pearson's statistic against counts in proportion to `weights`. */
function chiSquare(counts: readonly number[], weights: readonly number[]): number {
  const total = counts.reduce((sum, count) => sum + count);
  const weight = weights.reduce((sum, each) => sum + each);
  return counts.reduce((sum, count, index) => {
    const expected = (total * (weights[index] as number)) / weight;
    return sum + (count - expected) ** 2 / expected;
  }, 0);
}

describe('affinity', () => {
  it('sends what has one key to one endpoint, whatever the order of the pool', () => {
    const endpoints = servers(7);
    expect(homes(endpoints)).toEqual(homes([...endpoints].reverse()));
  });

  it('spreads keys evenly over endpoints of one weight', () => {
    const endpoints = servers(10);
    // 27.9 is exceeded by chance once in a thousand, with 9 degrees of freedom.
    expect(chiSquare(countsOf(homes(endpoints), endpoints), Array(10).fill(1))).toBeLessThan(27.9);
  });

  it('spreads keys by weight', () => {
    const weights = [1, 2, 3, 0.5, 4];
    const endpoints = servers(5, (index) => weights[index] as number);
    // 18.5, with 4 degrees of freedom.
    expect(chiSquare(countsOf(homes(endpoints), endpoints), weights)).toBeLessThan(18.5);
  });

  it('moves only the keys of an endpoint that leaves, and spreads them evenly over the others', () => {
    const endpoints = servers(8);
    const before = homes(endpoints);
    const rest = endpoints.filter(({ id }) => id !== 'gpu-3');
    const after = homes(rest);
    const orphans = after.filter((_, index) => before[index] === 'gpu-3');
    expect(after.filter((id, index) => id !== before[index])).toHaveLength(orphans.length);
    expect(orphans.length).toBeGreaterThan(600);
    // 22.5, with 6 degrees of freedom.
    expect(chiSquare(countsOf(orphans, rest), Array(7).fill(1))).toBeLessThan(22.5);
  });

  it('moves keys only to the endpoint that joins, or whose weight grows', () => {
    const endpoints = servers(8);
    const before = homes(endpoints.slice(1));
    const joined = homes(endpoints);
    for (const [index, id] of joined.entries()) if (id !== before[index]) expect(id).toBe('gpu-0');
    const grown = homes(servers(8, (index) => (index === 5 ? 3 : 1)));
    for (const [index, id] of grown.entries()) if (id !== joined[index]) expect(id).toBe('gpu-5');
    expect(grown.filter((id) => id === 'gpu-5').length).toBeGreaterThan(
      2 * joined.filter((id) => id === 'gpu-5').length,
    );
  });

  it.each([1, 1.25, 2])('never loads an endpoint above ⌈%s · its share⌉, whatever the keys', (loadCap) => {
    const random = new Random(1);
    const endpoints = servers(6, (index) => [1, 1, 2, 3, 0.5, 1][index] as number);
    const weights = endpoints.reduce((sum, { weight }) => sum + weight, 0);
    const picker = affinity({ loadCap });
    let inFlight = 0;
    for (let i = 0; i < 4000; i++) {
      const busy = random.pick(endpoints);
      if (random.chance(0.4) && busy.inFlightRequests > 0) {
        busy.inFlightRequests--;
        inFlight--;
        continue;
      }
      // Half of all requests have one key.
      const chosen = picker.pick(endpoints, about(random.chance(0.5) ? 'hot' : random.pick(keys)), 0) as Mutable;
      chosen.inFlightRequests++;
      inFlight++;
      expect(chosen.inFlightRequests).toBeLessThanOrEqual(Math.ceil((loadCap * inFlight * chosen.weight) / weights));
    }
    expect(inFlight).toBeGreaterThan(300);
  });

  it('goes on in the key’s own order, and back home when there is room', () => {
    const endpoints = servers(5);
    const picker = affinity({ loadCap: 1 });
    const order: string[] = [];
    for (
      let left: readonly Mutable[] = endpoints;
      left.length > 0;
      left = left.filter(({ id }) => !order.includes(id))
    ) {
      order.push(picker.pick(left, about('hot'), 0)?.id ?? '');
    }
    const chosen = order.map(() => {
      const endpoint = picker.pick(endpoints, about('hot'), 0) as Mutable;
      endpoint.inFlightRequests++;
      return endpoint.id;
    });
    expect(chosen).toEqual(order);
    expect(new Set(order).size).toBe(5);
    for (const endpoint of endpoints) if (endpoint.id === order[0]) endpoint.inFlightRequests--;
    expect(picker.pick(endpoints, about('hot'), 0)?.id).toBe(order[0]);
  });

  it.each([undefined, '', 7, null])('sends a request with the key %j to the least loaded', (key) => {
    const endpoints = servers(3);
    for (const [index, endpoint] of endpoints.entries()) endpoint.inFlightRequests = [2, 1, 3][index] as number;
    expect(affinity().pick(endpoints, about(key), 0)?.id).toBe('gpu-1');
    expect(affinity().pick(endpoints, fakeItem({ request: undefined }), 0)?.id).toBe('gpu-1');
  });

  it('finds the key in the request, in the fairness ID, or by a function', () => {
    const endpoints = servers(50);
    const home = affinity().pick(endpoints, about('alice'), 0);
    expect(affinity({ by: 'fairnessId' }).pick(endpoints, fakeItem({ fairnessId: 'alice' }), 0)).toBe(home);
    const byUser = affinity<{ user: string }>({ by: ({ request }) => request.user });
    expect(byUser.pick(endpoints, { ...fakeItem(), request: { user: 'alice' } }, 0)).toBe(home);
    expect(affinity().pick(endpoints, about('bob'), 0)).not.toBe(home);
  });

  it('rejects options that cannot be', () => {
    expect(() => affinity({ by: 'session' as never, loadCap: 0.9 })).toThrow(
      `affinity: 2 problems
  by: expected "affinityKey", "fairnessId", or a function of the request in the queue; got "session" (string)
  loadCap: expected a number from 1 up; got 0.9 (number)`,
    );
  });
});

describe('prefixKey', () => {
  it('is the same for prompts that begin alike, and another one otherwise', () => {
    const system = 'You are a helpful assistant. '.repeat(20);
    expect(prefixKey(`${system}Hello`)).toBe(prefixKey(`${system}Goodbye`));
    expect(prefixKey(`${system}Hello`, 10_000)).not.toBe(prefixKey(`${system}Goodbye`, 10_000));
    expect(prefixKey(system, 12)).toBe(prefixKey('You are a he', 12));
    expect(prefixKey(system, 12)).not.toBe(prefixKey('You are a hE', 12));
    expect(prefixKey('')).not.toBe('');
  });

  it('tells thousands of beginnings apart, in any script', () => {
    expect(new Set(keys.map((key) => prefixKey(key))).size).toBe(keys.length);
    expect(prefixKey('模型')).not.toBe(prefixKey('模塑'));
  });
});
