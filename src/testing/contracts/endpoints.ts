/** The contracts of endpoint filters and endpoint pickers. */
import type { EndpointFilter, EndpointPicker, EndpointView, ItemView, Lease } from '../../index.js';
import { concurrencyDetector, EndpointPool } from '../../index.js';
import { type ContractCase, contract, expectPart, expectSame, expectThat, ids } from './contract-case.js';
import {
  expectBalanced,
  expectNoFaults,
  makeFixture,
  ofController,
  sabotaged,
  serveAll,
  survival,
} from './controller-fixture.js';
import { endpointView, itemView, Random, randomEndpoints, repeatedly } from './views.js';

const words = ['a', 'b', 'a,b', '', ' ', 'e0', 'e1:80, e2:80', undefined, null, 7, ['e0', 'e3'], [], {}];

/** A request that says something, or nothing, to any filter. */
function randomItem(random: Random): ItemView {
  const [model, endpointSubset] = [random.pick(words), random.pick(words)];
  const request = random.chance(0.1) ? random.pick(words) : Object.freeze({ byteSize: 1, model, endpointSubset });
  return Object.freeze(itemView({ request }));
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
        const like = { ...item, sequence: item.sequence + 1, fairnessId: 'b' };
        expectSame(filter.classOf(like), requestClass, 'the class of a like request');
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

/** The contract of endpoint pickers, as cases for any test framework. */
export function endpointPickerContract(make: () => EndpointPicker): ContractCase[] {
  return contract(make, {
    'picks one of what it was given, and changes nothing in it'(picker) {
      const requests = [{ byteSize: 1 }, {}, Object.freeze({ byteSize: 1, model: 7, prompt: null })];
      repeatedly(300, 1, (random, i) => {
        const endpoints = randomEndpoints(random, 1, i, () => ({ weight: random.pick([1, 1, 0.1, 1000]) }));
        const picked = picker.pick(
          endpoints,
          Object.freeze(itemView({ sequence: i, request: random.pick(requests) })),
          i,
        );
        const isOneOfThem = picked !== undefined && endpoints.includes(picked);
        expectThat(isOneOfThem, `of ${endpoints.length} endpoints it picks ${JSON.stringify(picked)}`);
      });
    },
    'works for a pool that changes, and is never at fault'(endpointPicker) {
      const random = new Random(2);
      const pool = new EndpointPool();
      for (const id of ['a', 'b', 'c']) pool.add(id);
      const saturationDetector = concurrencyDetector({ maxConcurrency: 3 });
      const { flow } = makeFixture({ pool, endpointPicker, saturationDetector });
      const leases: Lease[] = [];
      for (let i = 0; i < 500; i++) {
        const id = `e${random.int(5)}`;
        if (random.chance(0.1) && !pool.remove(id)) pool.add(id);
        const outcome = flow.tryEnqueue({ byteSize: 1, tokens: random.int(9) }, { fairnessId: `f${random.int(3)}` });
        if (outcome?.type === 'Dispatched') leases.push(outcome.lease);
        else leases.splice(random.int(leases.length), 1)[0]?.release();
        const fullest = Math.max(...pool.endpoints.map(({ inFlightRequests }) => inFlightRequests));
        expectThat(fullest <= 3, `an endpoint with 3 seats has ${fullest} requests`);
      }
      expectBalanced(flow);
      const { dispatched, pluginErrors } = flow.stats();
      expectNoFaults(pluginErrors);
      expectThat(dispatched > 100, `only ${dispatched} requests went`);
    },
    ...ofController(make, (each) => ({ endpointPicker: each() }), {
      served: 'serves requests of every tenant and priority, and is never at fault',
      method: 'pick',
      lost: 'serves on when its choices are lost: the least loaded endpoint gets the request',
      tellsFaults: true,
    }),
  });
}
