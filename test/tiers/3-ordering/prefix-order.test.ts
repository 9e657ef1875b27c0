import { describe, expect, it } from 'vitest';
import { type ItemView, type OrderingPolicy, prefixOrder, virtualTokenCounter } from '../../../src/index.js';
import { Random } from '../../property/random.js';
import { fakeItem } from '../../support/fake-item.js';
import { dial, key, makeFlow } from '../../support/flow.js';

function waitingFlow(ordering: OrderingPolicy) {
  const detector = dial(1, true);
  const { flow, clock } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, ordering }] });
  const order: string[] = [];
  flow.on('dispatched', ({ item }) => order.push(`${affinityKeyOf(item)}${item.sequence}`));
  const send = (affinityKey: string, signal?: AbortSignal): void => {
    void flow.enqueue({ byteSize: 1, affinityKey, ...(signal && { signal }) } as never, key('t'));
  };
  return { flow, clock, detector, order, send };
}

function affinityKeyOf({ request }: ItemView): string {
  return String((request as { affinityKey?: string }).affinityKey);
}

describe('prefixOrder', () => {
  it('lets requests that begin alike go one after the other', () => {
    const { detector, order, send } = waitingFlow(prefixOrder());
    for (const name of ['a', 'b', 'c', 'a', 'b', 'a']) send(name);
    detector.turnTo(0);
    expect(order.map((name) => name[0]).join('')).toBe('aaabbc');
  });

  it.each([0, 1, 3, 8])('lets nobody be passed more than %i times while first', (overtakings) => {
    const { detector, order, send } = waitingFlow(prefixOrder({ overtakings, lookahead: 100 }));
    const random = new Random(overtakings);
    const names = Array.from({ length: 300 }, () => random.pick(['a', 'b', 'c', 'd', 'e']));
    for (const name of names) send(name);
    detector.turnTo(0);
    const left = names.map((name, i) => `${name}${i}`);
    let passed = 0;
    let most = 0;
    for (const gone of order) {
      passed = gone === left[0] ? 0 : passed + 1;
      most = Math.max(most, passed);
      left.splice(left.indexOf(gone), 1);
    }
    expect(left).toEqual([]);
    expect(most).toBe(overtakings);
  });

  it('looks at so many requests, and no further', () => {
    const { detector, order, send } = waitingFlow(prefixOrder({ lookahead: 2 }));
    for (const name of ['a', 'b', 'c', 'd', 'a']) send(name);
    detector.turnTo(0);
    expect(order).toEqual(['a0', 'b1', 'c2', 'a4', 'd3']);
  });

  it('asks what is cached at each choice, where the host can tell', () => {
    const cached: Record<string, number> = { a: 1, b: 5 };
    const { detector, order, send } = waitingFlow(
      prefixOrder({
        prefixScore: (item) => {
          cached.c = 9;
          return cached[affinityKeyOf(item)] ?? 0;
        },
      }),
    );
    for (const name of ['a', 'b', 'c', 'd']) send(name);
    detector.turnTo(0);
    expect(order).toEqual(['c2', 'b1', 'a0', 'd3']);
  });

  it('keeps its books when requests leave from the middle', () => {
    const { flow, detector, order, send } = waitingFlow(prefixOrder());
    const random = new Random(9);
    const controllers: AbortController[] = [];
    for (let i = 0; i < 200; i++) {
      const controller = new AbortController();
      controllers.push(controller);
      send(random.pick(['a', 'b', 'c']), controller.signal);
    }
    for (const controller of controllers) if (random.chance(0.4)) controller.abort();
    const { waiting } = flow.stats();
    detector.turnTo(0);
    expect(order).toHaveLength(waiting);
    expect(new Set(order).size).toBe(waiting);
    expect(flow.stats()).toMatchObject({ waiting: 0, waitingBytes: 0, pluginErrors: 0 });
  });

  it('goes by arrival when a score is at fault, and tells', () => {
    const { flow, detector, order, send } = waitingFlow(prefixOrder({ prefixScore: () => Number.NaN }));
    for (const name of ['a', 'b', 'a']) send(name);
    detector.turnTo(0);
    expect(order).toEqual(['a0', 'b1', 'a2']);
    expect(flow.stats().pluginErrors).toBeGreaterThan(0);
  });

  it('leaves the shares of tenants as they are, and raises the part of requests that follow one of their kind', () => {
    const likeBefore = (ordering?: OrderingPolicy): { hits: number; byTenant: Record<string, number> } => {
      const detector = dial(1, true);
      const fairness = virtualTokenCounter({ cost: 'requests' });
      const { flow } = makeFlow({
        saturationDetector: detector,
        bands: [{ priority: 0, fairness, ...(ordering && { ordering }) }],
      });
      const random = new Random(11);
      const latest = new Map<string, string>();
      const byTenant: Record<string, number> = {};
      let hits = 0;
      let dispatched = 0;
      flow.on('dispatched', ({ item }) => {
        const { fairnessId } = item;
        if (latest.get(fairnessId) === affinityKeyOf(item)) hits++;
        latest.set(fairnessId, affinityKeyOf(item));
        byTenant[fairnessId] = (byTenant[fairnessId] ?? 0) + 1;
        dispatched++;
        if (dispatched === 300) detector.turnTo(1);
      });
      for (let i = 0; i < 800; i++) {
        void flow.enqueue({ byteSize: 1, affinityKey: String(random.int(8)) } as never, key(`t${i % 4}`));
      }
      detector.turnTo(0);
      return { hits, byTenant };
    };
    const plain = likeBefore();
    const ordered = likeBefore(prefixOrder());
    expect(ordered.byTenant).toEqual(plain.byTenant);
    expect(plain.hits).toBeLessThan(75);
    expect(ordered.hits).toBeGreaterThan(200);
  });

  it.each([
    [{ overtakings: -1 }, 'overtakings'],
    [{ overtakings: 1.5 }, 'overtakings'],
    [{ lookahead: 0 }, 'lookahead'],
    [{ by: 'prompt' as never }, 'by'],
    [{ prefixScore: 1 as never }, 'prefixScore'],
  ])('rejects %j', (options, path) => {
    expect(() => prefixOrder(options)).toThrowError(`prefixOrder: ${path}`);
  });
});

/** What the policy keeps. */
const mostKeys = 4096;

describe('what counts as the beginning of a request', () => {
  const scoresOf = (policy: OrderingPolicy) => {
    const { score, dispatched } = policy.scores!;
    return { score, dispatched: (item: ItemView): void => dispatched?.(item) };
  };

  it('is its affinityKey: those of the key that went latest score most, others nothing', () => {
    const { score, dispatched } = scoresOf(prefixOrder());
    const of = (affinityKey: unknown) => fakeItem({ request: { affinityKey } });
    dispatched(of('a'));
    dispatched(of('b'));
    expect(score(of('b'))).toBeGreaterThan(score(of('a')));
    expect(score(of('a'))).toBeGreaterThan(0);
    expect(score(of('c'))).toBe(0);
    dispatched(of('a'));
    expect(score(of('a'))).toBeGreaterThan(score(of('b')));
  });

  it.each([[undefined], [null], ['text'], [{}], [{ affinityKey: '' }], [{ affinityKey: 5 }], [{ affinityKey: {} }]])(
    'is nothing for the request %j, which scores like one that is not known',
    (request) => {
      const { score, dispatched } = scoresOf(prefixOrder());
      const item = fakeItem({ request });
      dispatched(item);
      expect(score(item)).toBe(0);
    },
  );

  it('is the fairness ID, where it is said to be', () => {
    const { score, dispatched } = scoresOf(prefixOrder({ by: 'fairnessId' }));
    dispatched(fakeItem({ fairnessId: 'a' }));
    expect(score(fakeItem({ fairnessId: 'a' }))).toBeGreaterThan(0);
    expect(score(fakeItem({ fairnessId: 'b', request: { affinityKey: 'a' } }))).toBe(0);
  });

  it('is remembered for as many keys as there is room for: the one that went longest ago is forgotten first', () => {
    const { score, dispatched } = scoresOf(prefixOrder());
    const of = (affinityKey: string) => fakeItem({ request: { affinityKey } });
    for (let i = 0; i < mostKeys; i++) dispatched(of(`key ${i}`));
    dispatched(of('key 0'));
    expect(score(of('key 1'))).toBeGreaterThan(0);
    dispatched(of('one more'));
    expect([score(of('key 1')), score(of('key 0')) > 0, score(of('key 2')) > 0]).toEqual([0, true, true]);
  });

  it.each([[{}], [{ prefixScore: () => 1 }]])('leaves the queue in the order of arrival (%#)', (options) => {
    const policy = prefixOrder(options);
    const [first, second] = [fakeItem({ sequence: 1 }), fakeItem({ sequence: 2 })];
    expect([policy.arrivalOrder, policy.compare(first, second), policy.compare(second, first)]).toEqual([true, -1, 1]);
  });
});
