/** The contract of every fairness policy, looked at from outside: through a controller that uses it. */
import { type FairnessPolicy, globalStrict, type Lease } from '../../index.js';
import { type ContractCase, contract, expectSame, expectThat } from './contract-case.js';
import { expectBalanced, makeFixture, ofController, sabotaged, Valve } from './controller-fixture.js';
import { Random } from './views.js';

interface Run {
  /** The requests by number, in the order in which they went. */
  readonly order: readonly number[];
  /** The flow of each request, by number. */
  readonly flows: readonly string[];
  readonly errors: number;
  readonly left: number;
}

const steps = 400;
const abortsAtStep = 250;

/** A random history in two bands under the policy; in the end the gate stays open until all have gone. */
function live(policy: FairnessPolicy, seed: number): Run {
  const random = new Random(seed);
  const valve = new Valve();
  const bands = [5, 0].map((priority) => ({ priority, fairness: policy }));
  const { flow, clock } = makeFixture({ saturationDetector: valve, bands, flowIdleTimeout: 500 });
  const order: number[] = [];
  const flows: string[] = [];
  const running: Lease[] = [];
  flow.on('dispatched', ({ item, lease }) => {
    order.push(item.byteSize);
    running.push(lease);
  });
  const abort = new AbortController();
  for (let step = 0; step < steps; step++) {
    const name = `f${random.int(8)}`;
    const priority = random.pick([5, 0]);
    const dice = random.next();
    if (dice < 0.5) {
      const signal = random.chance(0.05) ? abort.signal : undefined;
      void flow.enqueue({ byteSize: flows.length, tokens: random.int(50), signal }, { fairnessId: name, priority });
      flows.push(`${name} of ${priority}`);
    } else if (dice < 0.75) {
      valve.open(1 + random.int(3));
      valve.close();
    } else if (dice < 0.9 && running.length > 0) {
      const [lease] = running.splice(random.int(running.length), 1) as [Lease];
      if (random.chance(0.7)) lease.report({ promptTokens: random.int(100), completionTokens: random.int(100) });
      lease.release();
    } else clock.advance(random.int(300));
    if (step === abortsAtStep) abort.abort();
  }
  valve.open(Number.MAX_SAFE_INTEGER);
  for (const lease of running) lease.release();
  expectBalanced(flow);
  const { waiting, pluginErrors, inFlight } = flow.stats();
  return { order, flows, errors: pluginErrors, left: waiting + inFlight };
}

/**
 * The contract of fairness policies, as cases for any test framework.
 * @example for (const { name, run } of fairnessPolicyContract(() => myPolicy())) it(name, run);
 */
export function fairnessPolicyContract(make: () => FairnessPolicy): ContractCase[] {
  return contract(make, {
    'lets every request go once, picks nothing but active flows, and leaves nobody behind'() {
      for (let seed = 1; seed <= 10; seed++) {
        const { order, errors, left } = live(make(), seed);
        const twice = order.length - new Set(order).size;
        expectSame({ errors, left, twice }, { errors: 0, left: 0, twice: 0 }, `history ${seed}`);
        expectThat(order.length > 100, `history ${seed}: only ${order.length} requests went`);
      }
    },
    'leaves the order inside a flow to the ordering policy'() {
      for (let seed = 11; seed <= 20; seed++) {
        const { order, flows } = live(make(), seed);
        const last = new Map<string, number>();
        for (const number of order) {
          const flow = flows[number] as string;
          const before = last.get(flow) ?? -1;
          expectThat(number > before, `history ${seed}: request ${number} of ${flow} went after ${before}`);
          last.set(flow, number);
        }
      }
    },
    'decides alike on like histories'() {
      for (let seed = 21; seed <= 25; seed++)
        expectSame(live(make(), seed).order, live(make(), seed).order, `history ${seed} played twice`);
    },
    async 'may come to and go from a queue that is in use'() {
      const valve = new Valve();
      const { flow } = makeFixture({ saturationDetector: valve, bands: [{ priority: 0, fairness: globalStrict() }] });
      const served: string[] = [];
      flow.on('dispatched', ({ item, lease }) => {
        served.push(item.fairnessId);
        queueMicrotask(() => lease.release());
      });
      const names = Array.from({ length: 24 }, (_, i) => `f${i % 5}`);
      for (const fairnessId of names) void flow.enqueue({ byteSize: 1 }, { fairnessId });
      for (const fairness of [make(), globalStrict(), make(), make(), globalStrict()]) {
        flow.reconfigure({ bands: [{ priority: 0, fairness }] });
        for (let i = 0; i < 4; i++) valve.open(1);
      }
      for (let i = 0; i < names.length; i++) valve.open(1);
      expectSame([...served].sort(), [...names].sort(), 'requests that went, by flow');
      await flow.close();
      const { waiting, pluginErrors } = flow.stats();
      expectSame({ waiting, pluginErrors }, { waiting: 0, pluginErrors: 0 }, 'in the end');
    },
    ...ofController(
      make,
      (each) => ({ bands: [10, 5, 0, -10].map((priority) => ({ priority, fairness: each() })) }),
      {
        served: 'serves requests of every tenant and priority, and is never at fault',
        method: 'pick',
        lost: 'serves on when its picks are lost: a fault costs one decision',
        tellsFaults: !('sharedQueue' in make()),
      },
      withBrokenSelectors,
    ),
  });
}

/** Of a shared queue nobody asks for a selector. */
function withBrokenSelectors(policy: FairnessPolicy, method?: 'pick'): FairnessPolicy {
  if ('sharedQueue' in policy) return policy;
  return { type: policy.type, createSelector: (band) => sabotaged(policy.createSelector(band), method) };
}
