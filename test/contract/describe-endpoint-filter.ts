/** What every endpoint filter must keep. */
import { describe, expect, it } from 'vitest';
import type { EndpointFilter, ItemView } from '../../src/index.js';
import { Random } from '../property/random.js';
import { fakeItem } from '../support/fake-item.js';
import { fakeEndpoint } from '../support/fake-pool.js';

const words = ['a', 'b', 'a,b', '', ' ', 'e0', 'e1:80, e2:80', undefined, null, 7, ['e0', 'e3'], [], {}];

/** A request that says something, or nothing, to any filter. */
function randomItem(random: Random): ItemView {
  const [model, endpointSubset] = [random.pick(words), random.pick(words)];
  return Object.freeze(
    fakeItem({ request: random.chance(0.1) ? random.pick(words) : Object.freeze({ byteSize: 1, model, endpointSubset }) }),
  );
}

function randomEndpoints(random: Random) {
  const labelled = (): Record<string, string> => (random.chance(0.3) ? {} : { model: random.pick(['a', 'b', 'a, b', '']) });
  const all = Array.from({ length: random.int(8) }, (_, index) =>
    Object.freeze(fakeEndpoint(`e${index}`, { labels: Object.freeze(labelled()), inFlightRequests: random.int(9) })),
  );
  return Object.freeze(all);
}

export function describeEndpointFilter(name: string, make: () => EndpointFilter): void {
  describe(`endpoint filter ${name}`, () => {
    it('has a type', () => {
      expect(make().type).toMatch(/^[a-z][a-z0-9-]*$/);
    });

    it('finds a class, or none, for every request, and the same one again', () => {
      const random = new Random(1);
      const filter = make();
      const other = make();
      for (let i = 0; i < 300; i++) {
        const item = randomItem(random);
        const requestClass = filter.classOf(item);
        expect(['string', 'undefined']).toContain(typeof requestClass);
        expect(filter.classOf({ ...item, sequence: item.sequence + 1, fairnessId: 'b' })).toBe(requestClass);
        expect(other.classOf(item)).toBe(requestClass);
      }
    });

    it('keeps some of what it was given, in its order, and changes nothing in it', () => {
      const random = new Random(2);
      const filter = make();
      for (let i = 0; i < 300; i++) {
        const endpoints = randomEndpoints(random);
        const requestClass = filter.classOf(randomItem(random));
        if (requestClass === undefined) continue;
        const kept = filter.keep(endpoints, requestClass);
        expect(kept).toEqual(endpoints.filter((endpoint) => kept.includes(endpoint)));
      }
    });

    it('judges each endpoint for itself, by name and labels and not by its load', () => {
      const random = new Random(3);
      const filter = make();
      for (let i = 0; i < 300; i++) {
        const endpoints = randomEndpoints(random);
        const requestClass = filter.classOf(randomItem(random));
        if (requestClass === undefined) continue;
        const kept = filter.keep(endpoints, requestClass).map(({ id }) => id);
        const alone = endpoints.flatMap(({ id, labels }) => filter.keep([fakeEndpoint(id, { labels })], requestClass));
        expect(alone.map(({ id }) => id)).toEqual(kept);
      }
    });
  });
}
