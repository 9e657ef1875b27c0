import { describe, expect, it } from 'vitest';
import { type ItemView, type OrderingPolicy, prefixOrder, virtualTokenCounter } from '../../../src/index.js';
import { Random } from '../../property/random.js';
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
      const { flow } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, fairness, ...(ordering && { ordering }) }] });
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
    expect(() => prefixOrder(options)).toThrowError(path);
  });
});
