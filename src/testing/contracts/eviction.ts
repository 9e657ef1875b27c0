/** The contracts of eviction filters and orderings. */
import type { EvictionFilter, EvictionOrdering, Lease } from '../../index.js';
import { concurrencyDetector, inFlightEviction } from '../../index.js';
import type { InFlightView } from '../../types/index.js';
import { type ContractCase, comparison, contract, expectSame, expectThat, type Promises } from './contract-case.js';
import { expectBalanced, expectNoFaults, makeFixture, sabotaged, survival } from './controller-fixture.js';
import { endpointView, Random } from './views.js';

/** Few distinct values, so that ties are many; frozen, because views are not to be written to. */
function randomLeases(seed: number, count: number): InFlightView[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () =>
    Object.freeze({
      fairnessId: `f${random.int(3)}`,
      priority: random.pick([-10, -1, 0, 5, Number.MIN_SAFE_INTEGER]),
      dispatchedAtMs: random.int(4) * 10,
      tokens: random.pick([0, 1, 100, Number.MAX_SAFE_INTEGER]),
      usage: Object.freeze({ promptTokens: random.int(3) * 100, completionTokens: random.int(3) * 10 }),
      hasAnswer: random.chance(0.5),
      endpoint: random.chance(0.5) ? endpointView(`e${random.int(2)}`) : undefined,
    }),
  );
}

interface Plugins {
  readonly filter?: EvictionFilter;
  readonly ordering?: EvictionOrdering;
}

/** Fills a controller with sheddable requests, lets more important ones come, lets victims go; faults of plugins. */
function evictUnder(plugins: Plugins): number {
  const seats = 8;
  const { flow, clock } = makeFixture({
    saturationDetector: concurrencyDetector({ maxConcurrency: seats }),
    eviction: inFlightEviction({ ...plugins }),
  });
  const running = new Set<Lease>();
  flow.on('dispatched', ({ lease }) => running.add(lease));
  flow.on('evicted', ({ lease }) => {
    expectThat(running.has(lease) && !lease.isReleased, 'a request was evicted that does not run');
  });
  for (let i = 0; i < seats; i++)
    void flow.enqueue({ byteSize: 1, tokens: i }, { fairnessId: `f${i % 3}`, priority: -1 - (i % 2) });
  for (let i = 0; i < seats / 2; i++) void flow.enqueue({ byteSize: 1 }, { fairnessId: 'important', priority: 10 });
  for (let round = 0; round < 100 && running.size > 0; round++) {
    clock.advance(100);
    const victims = [...running].filter((lease) => lease.isEvicted);
    const [next] = victims.length > 0 ? victims : running;
    if (next !== undefined) {
      running.delete(next);
      next.release();
    }
    expectBalanced(flow);
  }
  const { waiting, inFlight, pluginErrors } = flow.stats();
  expectSame({ waiting, inFlight }, { waiting: 0, inFlight: 0 }, 'in the end');
  return pluginErrors;
}

/** What both promise of a controller; `lost` is what holds while answers of `method` are lost. */
function ofEviction<P extends object>(
  using: (plugin: P) => Plugins,
  method: keyof P & string,
  lost: string,
): Promises<P> {
  return {
    'lets important requests have seats, and is never at fault': (plugin) => expectNoFaults(evictUnder(using(plugin))),
    [lost]: (plugin) => void evictUnder(using(sabotaged(plugin, method))),
    ...survival((plugin) => ({ eviction: inFlightEviction({ ...using(plugin) }) })),
  };
}

/** The contract of eviction filters, as cases for any test framework. */
export function evictionFilterContract(make: () => EvictionFilter): ContractCase[] {
  return contract(make, {
    'answers true or false for every request, and the same again'(filter) {
      for (const lease of randomLeases(1, 200)) {
        for (const hook of ['accepts', 'stillAccepts'] as const) {
          const answer: unknown = filter[hook]?.(lease) ?? true;
          expectThat(typeof answer === 'boolean', `${hook} answers ${String(answer)}`);
          expectSame(make()[hook]?.(lease) ?? true, answer, 'what another filter answers');
        }
      }
    },
    ...ofEviction((filter: EvictionFilter) => ({ filter }), 'accepts', 'evicts nobody by an answer that was lost'),
  });
}

/** The contract of eviction orderings, as cases for any test framework. */
export function evictionOrderingContract(make: () => EvictionOrdering): ContractCase[] {
  return contract(make, {
    ...comparison('always answers with a number', make().compare, randomLeases(2, 40)),
    ...ofEviction((ordering: EvictionOrdering) => ({ ordering }), 'compare', 'evicts on when its comparisons are lost'),
  });
}
