/** The contract of every ordering policy. */
import { globalStrict, type ItemView, type OrderingPolicy } from '../../index.js';
import { type ContractCase, comparison, contract, expectSame } from './contract-case.js';
import { expectNoFaults, makeFixture, ofController, Valve } from './controller-fixture.js';
import { itemView, Random } from './views.js';

const none = Infinity;

/** Few distinct values, so that ties are many; frozen, because views are not to be written to. */
function randomItems(seed: number, count: number): ItemView[] {
  const random = new Random(seed);
  return Array.from({ length: count }, (_, sequence) => {
    const enqueuedAtMs = random.int(4) * 10;
    const receivedAtMs = enqueuedAtMs - random.int(3) * 5;
    return Object.freeze(
      itemView({
        sequence,
        enqueuedAtMs,
        receivedAtMs,
        fairnessId: `f${random.int(3)}`,
        byteSize: random.int(3),
        tokens: random.int(3),
        ttlMs: random.pick([none, 10, 20, 30]),
        ttftDeadlineAtMs: receivedAtMs + random.pick([none, 0, 10, 20]),
      }),
    );
  });
}

/** Values at the ends of their ranges. */
const extremes: readonly ItemView[] = [
  itemView(),
  itemView({ sequence: 1, ttlMs: 0, ttftDeadlineAtMs: 0 }),
  itemView({ sequence: 2, byteSize: Number.MAX_SAFE_INTEGER, tokens: Number.MAX_SAFE_INTEGER }),
  itemView({ sequence: 3, receivedAtMs: -1e15, enqueuedAtMs: 1e15 }),
  itemView({ sequence: 4, request: {}, fairnessId: '__proto__' }),
].map((item) => Object.freeze(item));

const alwaysANumber = 'always answers with a number, for requests without deadlines and with the largest values too';

/** The contract of ordering policies, as cases for any test framework. */
export function orderingPolicyContract(make: () => OrderingPolicy): ContractCase[] {
  const { compare, arrivalOrder } = make();
  const items = [...randomItems(7, 40), ...extremes.map((item) => ({ ...item, sequence: item.sequence + 40 }))];
  return contract(make, {
    ...comparison(alwaysANumber, compare, items),
    'is nothing but the order of arrival where it says arrivalOrder'() {
      if (arrivalOrder !== true) return;
      for (const a of items) {
        for (const b of items) {
          const byArrival = Math.sign(a.sequence - b.sequence);
          expectSame(Math.sign(compare(a, b)), byArrival, `requests ${a.sequence} and ${b.sequence}`);
        }
      }
    },
    'lets requests go in its order, ties by arrival'(ordering) {
      const random = new Random(3);
      const valve = new Valve();
      const { flow, clock } = makeFixture({
        saturationDetector: valve,
        bands: [{ priority: 0, ordering, fairness: globalStrict() }],
        defaultRequestTtl: '60s',
      });
      const waiting: ItemView[] = [];
      const order: number[] = [];
      // Copies, because an item drops its request when it leaves; what it has getters for is not copied by itself.
      flow.on('queued', ({ item }) => {
        const { receivedAtMs, ttftDeadlineAtMs } = item;
        waiting.push({ ...item, receivedAtMs, ttftDeadlineAtMs });
      });
      flow.on('dispatched', ({ item }) => order.push(item.sequence));
      for (let i = 0; i < 60; i++) {
        if (random.chance(0.3)) clock.advance(random.int(20));
        const request = {
          byteSize: random.int(5),
          ttlMs: random.pick([0, 5000, 6000, 7000]),
          sloTtftMs: random.pick([undefined, 0, 50, 100]),
          receivedAtMs: clock.now() - random.int(3),
        };
        void flow.enqueue(request, { fairnessId: `f${random.int(4)}` });
      }
      valve.open(Number.MAX_SAFE_INTEGER);
      const expected = waiting.sort((a, b) => ordering.compare(a, b) || a.sequence - b.sequence);
      const sequences = expected.map(({ sequence }) => sequence);
      expectSame(order, sequences, 'the order of dispatch');
      expectNoFaults(flow.stats().pluginErrors);
    },
    ...ofController(make, (each) => ({ bands: [10, 5, 0, -10].map((priority) => ({ priority, ordering: each() })) }), {
      served: 'serves requests of every tenant and priority, and is never at fault',
      method: 'compare',
      lost: 'serves on when its comparisons are lost',
    }),
  });
}
