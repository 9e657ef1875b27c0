/** The contract of every endpoint filter. */
import type { EndpointFilter, EndpointView, ItemView } from '../../index.js';
import { type ContractCase, contract, expectPart, expectSame, expectThat, ids } from './contract-case.js';
import { sabotaged, serveAll, survival } from './controller-fixture.js';
import { type Random, repeatedly } from './random.js';
import { endpointView, itemView, randomEndpoints } from './views.js';

const words = ['a', 'b', 'a,b', '', ' ', 'e0', 'e1:80, e2:80', undefined, null, 7, ['e0', 'e3'], [], {}];

/** A request that says something, or nothing, to any filter. */
function randomItem(random: Random): ItemView {
  const [model, endpointSubset] = [random.pick(words), random.pick(words)];
  return Object.freeze(
    itemView({
      request: random.chance(0.1) ? random.pick(words) : Object.freeze({ byteSize: 1, model, endpointSubset }),
    }),
  );
}

/** Calls `check` for random endpoints and the class of a random request. */
function withClasses(
  seed: number,
  filter: EndpointFilter,
  check: (endpoints: readonly EndpointView[], requestClass: string) => void,
): void {
  repeatedly(300, seed, (random) => {
    const labels = (): Record<string, string> =>
      random.chance(0.3) ? {} : { model: random.pick(['a', 'b', 'a, b', '']) };
    const endpoints = randomEndpoints(random, 0, 0, () => ({ labels: Object.freeze(labels()) }));
    const requestClass = filter.classOf(randomItem(random));
    if (requestClass !== undefined) check(endpoints, requestClass);
  });
}

/** The contract of endpoint filters, as cases for any test framework. */
export function endpointFilterContract(make: () => EndpointFilter): ContractCase[] {
  return contract(make, {
    'finds a class, or none, for every request, whatever it carries, and the same one again'(filter) {
      const other = make();
      repeatedly(300, 1, (random) => {
        const item = randomItem(random);
        const requestClass: unknown = filter.classOf(item);
        expectThat(requestClass === undefined || typeof requestClass === 'string', `a class of ${typeof requestClass}`);
        expectSame(
          filter.classOf({ ...item, sequence: item.sequence + 1, fairnessId: 'b' }),
          requestClass,
          'the class of a like request',
        );
        expectSame(other.classOf(item), requestClass, 'the class that another filter finds');
      });
    },
    'keeps some of what it was given, in its order, and changes nothing in it'(filter) {
      withClasses(2, filter, (endpoints, requestClass) => {
        expectPart(filter.keep(endpoints, requestClass), endpoints);
      });
    },
    'judges each endpoint for itself, by name and labels and not by its load'(filter) {
      withClasses(3, filter, (endpoints, requestClass) => {
        const alone = endpoints.flatMap(({ id, labels }) => filter.keep([endpointView(id, { labels })], requestClass));
        expectSame(ids(alone), ids(filter.keep(endpoints, requestClass)), 'what it keeps, one by one');
      });
    },
    async 'serves or refuses every request, also when its classes are lost'() {
      await serveAll({ endpointFilters: [make()] });
      await serveAll({ endpointFilters: [sabotaged(make(), 'classOf')] });
    },
    ...survival((filter: EndpointFilter) => ({ endpointFilters: [filter] })),
  });
}
