import { describe, expect, it } from 'vitest';
import {
  edf,
  type FlowRequest,
  fcfs,
  globalStrict,
  type ItemView,
  type OrderingPolicy,
  roundRobin,
  sloDeadline,
} from '../../../src/index.js';
import { Random } from '../../property/random.js';
import { fakeItem } from '../../support/fake-item.js';
import { dial, key, makeFlow, record } from '../../support/flow.js';

function first(policy: OrderingPolicy, a: Partial<ItemView>, b: Partial<ItemView>): 'a' | 'b' | 'arrival' {
  const order = policy.compare(fakeItem({ sequence: 1, ...a }), fakeItem({ sequence: 2, ...b }));
  const back = policy.compare(fakeItem({ sequence: 2, ...b }), fakeItem({ sequence: 1, ...a }));
  expect(Math.sign(order) + Math.sign(back)).toBe(0);
  return order < 0 ? 'a' : order > 0 ? 'b' : 'arrival';
}

describe('fcfs', () => {
  it('goes by arrival, and says so, so that it gets a FIFO', () => {
    expect(fcfs().arrivalOrder).toBe(true);
    expect(first(fcfs(), { sequence: 9 }, { sequence: 3 })).toBe('b');
  });
});

describe('edf', () => {
  it.each<[string, Partial<ItemView>, Partial<ItemView>, 'a' | 'b' | 'arrival']>([
    [
      'the earlier end of the time to wait first',
      { enqueuedAtMs: 0, ttlMs: 500 },
      { enqueuedAtMs: 100, ttlMs: 300 },
      'b',
    ],
    ['one without a TTL last', { ttlMs: Number.POSITIVE_INFINITY }, { enqueuedAtMs: 1e9, ttlMs: 1e9 }, 'b'],
    [
      'the earlier arrival first at equal deadlines',
      { enqueuedAtMs: 100, ttlMs: 100 },
      { enqueuedAtMs: 50, ttlMs: 150 },
      'b',
    ],
    [
      'two without a TTL by their arrival',
      { enqueuedAtMs: 5, ttlMs: Number.POSITIVE_INFINITY },
      { enqueuedAtMs: 5, ttlMs: Number.POSITIVE_INFINITY },
      'arrival',
    ],
    ['no heed to targets', { ttlMs: 10, ttftDeadlineAtMs: 9 }, { ttlMs: 10, ttftDeadlineAtMs: 1 }, 'arrival'],
  ])('puts %s', (_, a, b, expected) => {
    expect(first(edf(), a, b)).toBe(expected);
  });
});

describe('sloDeadline', () => {
  it.each<[string, Partial<ItemView>, Partial<ItemView>, 'a' | 'b' | 'arrival']>([
    ['the earlier target first', { ttftDeadlineAtMs: 90 }, { ttftDeadlineAtMs: 80 }, 'b'],
    ['one without a target last', { ttftDeadlineAtMs: Number.POSITIVE_INFINITY }, { ttftDeadlineAtMs: 1e12 }, 'b'],
    [
      'what the host saw first first, at equal targets',
      { ttftDeadlineAtMs: 90, receivedAtMs: 20 },
      { ttftDeadlineAtMs: 90, receivedAtMs: 10 },
      'b',
    ],
    [
      'two without a target by what the host saw first',
      { ttftDeadlineAtMs: Infinity, receivedAtMs: 20 },
      { ttftDeadlineAtMs: Infinity, receivedAtMs: 10 },
      'b',
    ],
    ['equals by arrival', { ttftDeadlineAtMs: 90 }, { ttftDeadlineAtMs: 90 }, 'arrival'],
  ])('puts %s', (_, a, b, expected) => {
    expect(first(sloDeadline(), a, b)).toBe(expected);
  });

  it('counts a target from when the host first saw the request', () => {
    const detector = dial(1, true);
    const { flow, clock } = makeFlow({
      saturationDetector: detector,
      bands: [{ priority: 0, ordering: sloDeadline() }],
    });
    clock.advance(1000);
    const order: number[] = [];
    flow.on('dispatched', ({ item }) => order.push(item.byteSize));
    void flow.enqueue({ byteSize: 1, sloTtftMs: 100 }, key());
    void flow.enqueue({ byteSize: 2, sloTtftMs: 150, receivedAtMs: 900 }, key());
    void flow.enqueue({ byteSize: 3 }, key());
    void flow.enqueue({ byteSize: 4, sloTtftMs: 0 }, key());
    detector.turnTo(0);
    expect(order).toEqual([4, 2, 1, 3]);
  });
});

describe('a comparator that fails', () => {
  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('faulty');
      },
    ],
    ['answers NaN', () => Number.NaN],
    ['answers nothing', () => undefined],
    ['answers text', () => '-1'],
    ['answers a big integer', () => -1n],
    ['answers what has no text form', () => Object.create(null)],
  ])('%s: arrival decides, and it is reported', (_, compare) => {
    const detector = dial(1, true);
    const ordering: OrderingPolicy = { type: 'faulty', compare: compare as () => number };
    const { flow } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, ordering }] });
    const errors = record(flow, 'pluginError');
    const order: number[] = [];
    flow.on('dispatched', ({ item }) => order.push(item.byteSize));
    for (let byteSize = 0; byteSize < 20; byteSize++) void flow.enqueue({ byteSize }, key());
    detector.turnTo(0);
    expect(order).toEqual(Array.from({ length: 20 }, (_, i) => i));
    expect(errors[0]).toMatchObject({ kind: 'ordering', type: 'faulty', error: expect.any(Error) });
  });

  it.each([
    ['one queue', undefined],
    ['a queue for each flow', roundRobin()],
  ])('without any order loses nobody, with %s', (_, fairness) => {
    const random = new Random(4);
    const detector = dial(1, true);
    const ordering: OrderingPolicy = { type: 'random', compare: () => random.next() - 0.5 };
    const { flow, clock } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, fairness, ordering }] });
    const abort = new AbortController();
    const gone = new Set<number>();
    flow.on('dispatched', ({ item }) => gone.add(item.byteSize));
    flow.on('dropped', ({ request }) => gone.add((request as { byteSize: number }).byteSize));
    for (let byteSize = 0; byteSize < 500; byteSize++) {
      const own = [{}, { ttlMs: 5 }, { signal: abort.signal }][byteSize % 3];
      void flow.enqueue({ byteSize, ...own }, key(`f${byteSize % 7}`));
    }
    abort.abort();
    clock.advance(5);
    detector.turnTo(0);
    expect(gone.size).toBe(500);
    expect(flow.stats()).toMatchObject({ waiting: 0, waitingBytes: 0 });
  });

  it('may answer with infinities', () => {
    const detector = dial(1, true);
    const ordering: OrderingPolicy = {
      type: 'last-first',
      compare: (a, b) => (a.sequence > b.sequence ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY),
    };
    const { flow } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, ordering }] });
    const order: number[] = [];
    flow.on('dispatched', ({ item }) => order.push(item.byteSize));
    for (let byteSize = 0; byteSize < 5; byteSize++) void flow.enqueue({ byteSize }, key());
    detector.turnTo(0);
    expect(order).toEqual([4, 3, 2, 1, 0]);
    expect(flow.stats().pluginErrors).toBe(0);
  });
});

it('an ordering with arrivalOrder is never asked', () => {
  let asked = 0;
  const detector = dial(1, true);
  const ordering: OrderingPolicy = { type: 'fifo', arrivalOrder: true, compare: () => asked++ };
  const { flow } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, ordering }] });
  for (let i = 0; i < 50; i++) void flow.enqueue({ byteSize: 1 }, key());
  detector.turnTo(0);
  expect([asked, flow.stats().dispatched]).toEqual([0, 50]);
});

describe('a policy that goes by what the host passed', () => {
  const rankOf = ({ request }: ItemView): number => (request as { readonly rank: number }).rank;
  const byRank: OrderingPolicy = { type: 'by-rank', compare: (a, b) => rankOf(a) - rankOf(b) };

  it.each(['band', 'flow'] as const)(
    "finds it on requests that are gone as well, with holBlocking '%s'",
    (holBlocking) => {
      for (let seed = 1; seed <= 20; seed++) {
        const random = new Random(seed);
        const detector = dial(1, true);
        const { flow } = makeFlow({
          saturationDetector: detector,
          maxDispatchesPerTurn: 1,
          holBlocking,
          bands: [{ priority: 0, ordering: byRank, fairness: globalStrict() }],
        });
        const waiting = new Map<number, AbortController>();
        flow.on('dispatched', ({ item, lease }) => {
          expect(rankOf(item)).toBe(Math.min(...waiting.keys()));
          waiting.delete(rankOf(item));
          lease.release();
        });
        for (let step = 0; step < 200; step++) {
          const rank = random.next();
          if (random.chance(0.5)) {
            const abort = new AbortController();
            waiting.set(rank, abort);
            void flow.enqueue(
              { byteSize: 1, rank, signal: abort.signal } as FlowRequest,
              key(random.pick(['a', 'b', 'c'])),
            );
          } else if (random.chance(0.6) && waiting.size > 0) {
            const [gone, abort] = random.pick([...waiting]);
            waiting.delete(gone);
            abort.abort();
          } else {
            detector.turnTo(0);
            detector.turnTo(1);
          }
        }
        expect(flow.stats()).toMatchObject({ pluginErrors: 0, waiting: waiting.size });
      }
    },
  );
});
