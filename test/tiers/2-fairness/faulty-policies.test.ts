import { describe, expect, it } from 'vitest';
import type { FlowFairnessPolicy } from '../../../src/index.js';
import type { BandView, FlowSelector, FlowView } from '../../../src/types/index.js';
import { dial, dispatchOrder, key, leaseOf, makeFlow, record, request, runNow } from '../../support/flow.js';

function policy(createSelector: (band: BandView) => FlowSelector): FlowFairnessPolicy {
  return { type: 'faulty', createSelector };
}

const fail = (): never => {
  throw new Error('faulty');
};

/** What goes, in order, when the gate opens for a, a, a, b, b, c. */
function served(fairness: FlowFairnessPolicy): { order: string[]; errors: unknown[] } {
  const detector = dial(1, true);
  const { flow } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, fairness }, { priority: -1 }] });
  const errors = record(flow, 'pluginError');
  void flow.enqueue(request, key('elsewhere', -1));
  for (const name of ['a', 'a', 'a', 'b', 'b', 'c']) void flow.enqueue(request, key(name));
  const order = dispatchOrder(flow);
  detector.turnTo(0);
  expect(flow.stats()).toMatchObject({ waiting: 0, dispatched: 7 });
  return { order: order.slice(0, 6), errors };
}

describe('when a fairness policy fails', () => {
  let foreign: FlowView | undefined;
  it.each<[string, (band: BandView) => FlowSelector]>([
    ['pick throws', () => ({ pick: fail })],
    ['pick returns nothing', () => ({ pick: () => undefined })],
    ['pick returns null', () => ({ pick: () => null as never })],
    ['pick returns a lookalike', (band) => ({ pick: () => ({ ...(band.firstActive as FlowView) }) })],
    [
      'pick returns an idle flow',
      () => {
        let first: FlowView | undefined;
        return {
          flowActivated: (flow) => (first ??= flow),
          flowDeactivated: (flow) => (first = flow),
          pick: () => (first?.waiting === 0 ? first : undefined),
        };
      },
    ],
    [
      'pick returns a flow of another band',
      (band) => {
        if (band.priority === -1) return { pick: () => undefined, flowActivated: (flow) => (foreign = flow) };
        return { pick: () => foreign };
      },
    ],
    ['createSelector throws', fail],
    ['createSelector returns nothing', () => undefined as never],
    ['createSelector returns what cannot pick', () => ({ pick: 5 }) as never],
  ])('because %s, the flow that is active longest goes, and then to the end', (_, createSelector) => {
    const { order, errors } = served(policy(createSelector));
    expect(order).toEqual(['a', 'b', 'c', 'a', 'b', 'a']);
    expect(errors[0]).toMatchObject({ kind: 'fairness', type: 'faulty', error: expect.any(Error) });
  });

  it.each([
    'flowActivated',
    'flowDeactivated',
    'itemAdded',
    'itemRemoved',
    'dispatched',
    'consumed',
    'settled',
    'flowRemoved',
  ] as const)('in %s, it is reported and dispatch goes on', async (hook) => {
    const { flow, clock } = makeFlow({
      flowIdleTimeout: 1000,
      bands: [{ priority: 0, fairness: policy((band) => ({ pick: () => band.firstActive, [hook]: fail })) }],
    });
    const errors = record(flow, 'pluginError');
    const held = runNow(flow);
    const waiting = [flow.enqueue(request, key('a')), flow.enqueue({ ...request, ttlMs: 10 }, key('b'))];
    clock.advance(10);
    held.release();
    const lease = leaseOf(await waiting[0]);
    lease.report({ completionTokens: 1 });
    lease.release();
    clock.advance(5000);
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0, dispatched: 2, evicted: 1, flows: 0 });
    expect(errors.length).toBeGreaterThan(0);
    expect(errors.every(({ kind, type }) => kind === 'fairness' && type === 'faulty')).toBe(true);
  });
});

describe('a fairness policy that could not make its selector', () => {
  /** Fails as often as told, then serves the flow that it counts most requests of. */
  function lateBy(failures: number) {
    const made = { asked: 0, settled: 0 };
    const fairness = policy(() => {
      made.asked++;
      if (made.asked <= failures) throw new Error('no connection yet');
      const waiting = new Map<FlowView, number>();
      const add = (flow: FlowView, by: number) => waiting.set(flow, (waiting.get(flow) ?? 0) + by);
      return {
        pick: () => [...waiting].filter(([flow]) => flow.waiting > 0).sort(([, a], [, b]) => b - a)[0]?.[0],
        itemAdded: (flow) => add(flow, 1),
        dispatched: (flow) => add(flow, -1),
        settled: () => made.settled++,
      };
    });
    return { fairness, made };
  }

  it('is asked again at the next decision, and hears of everything that waits', () => {
    const { fairness, made } = lateBy(1);
    expect(served(fairness).order).toEqual(['a', 'a', 'b', 'a', 'b', 'c']);
    expect(made.asked).toBe(2);
  });

  it('is asked once a second, while flows take turns and each decision says why', () => {
    const { fairness, made } = lateBy(3);
    const { flow, clock } = makeFlow({ bands: [{ priority: 0, fairness }], defaultRequestTtl: 0 });
    const errors = record(flow, 'pluginError');
    const leases = record(flow, 'dispatched');
    runNow(flow, key('a'));
    for (const name of ['a', 'a', 'a', 'a', 'b', 'b', 'c']) void flow.enqueue(request, key(name));
    const goOn = (times: number): void => {
      for (let i = 0; i < times; i++) leases.at(-1)?.lease.release();
    };
    const order = (): string => leases.map(({ item }) => item.fairnessId).join('');
    goOn(3);
    clock.advance(999);
    expect([order(), made]).toEqual(['aabc', { asked: 2, settled: 0 }]);
    expect(String(errors.at(-1)?.error)).toContain('createSelector failed: flows take turns');
    clock.advance(1);
    goOn(1);
    expect([order(), made]).toEqual(['aabca', { asked: 3, settled: 0 }]);
    clock.advance(1000);
    const faults = errors.length;
    goOn(4);
    expect([order(), made]).toEqual(['aabcaaab', { asked: 4, settled: 3 }]);
    expect(errors).toHaveLength(faults);
  });
});

describe('what a fairness policy is told', () => {
  it('is the way of every request, in order', async () => {
    const told: string[] = [];
    const tell = (what: string) => (flow: FlowView) => told.push(`${what} ${flow.fairnessId} ${flow.waiting}`);
    const { flow, clock } = makeFlow({
      flowIdleTimeout: '1m',
      bands: [
        {
          priority: 0,
          fairness: policy((band) => ({
            pick: () => band.firstActive,
            flowActivated: tell('activated'),
            flowDeactivated: tell('deactivated'),
            itemAdded: tell('added'),
            itemRemoved: tell('removed'),
            dispatched: tell('dispatched'),
            settled: (flow, usage) => told.push(`settled ${flow.fairnessId} ${usage.completionTokens}`),
            flowRemoved: ({ fairnessId }) => told.push(`forgotten ${fairnessId}`),
          })),
        },
      ],
    });
    const step = (expected: string[]): void => expect(told.splice(0)).toEqual(expected);
    const held = runNow(flow, key('through'));
    step(['dispatched through 0']);
    const waiting = [flow.enqueue(request, key('a')), flow.enqueue(request, key('a'))];
    void flow.enqueue({ ...request, ttlMs: 10 }, key('b'));
    step(['activated a 1', 'added a 1', 'added a 2', 'activated b 1', 'added b 1']);
    clock.advance(10);
    step(['deactivated b 0', 'removed b 0']);
    held.release();
    step(['settled through 0', 'dispatched a 1']);
    const first = leaseOf(await waiting[0]);
    first.report({ completionTokens: 7 });
    first.release();
    step(['settled a 7', 'deactivated a 0', 'dispatched a 0']);
    leaseOf(await waiting[1]).release();
    step(['settled a 0']);
    clock.advance(60_000);
    flow.stats();
    step(['forgotten b', 'forgotten through', 'forgotten a']);
  });

  it('is told for each dispatch one end, whichever band it was', () => {
    let [dispatched, settled] = [0, 0];
    const { flow } = makeFlow({
      saturationDetector: () => 0,
      defaultBand: {
        fairness: policy(() => ({ pick: () => undefined, dispatched: () => dispatched++, settled: () => settled++ })),
      },
    });
    const leases = Array.from({ length: 30 }, (_, i) =>
      runNow(flow, { priority: 1 + (i % 3), fairnessId: `f${i % 4}` }),
    );
    expect([dispatched, settled]).toEqual([30, 0]);
    for (const lease of leases) lease.release();
    for (const lease of leases) lease.release();
    expect([dispatched, settled]).toEqual([30, 30]);
  });

  it('needs no more than pick, which may look at all active flows', () => {
    const longest = policy((band) => ({
      pick: () => [...band.activeFlows()].sort((a, b) => b.waiting - a.waiting)[0],
    }));
    const { order, errors } = served(longest);
    expect(order).toEqual(['a', 'a', 'b', 'a', 'b', 'c']);
    expect(errors).toEqual([]);
  });

  it('shows the request that each flow would send next', () => {
    const smallest = policy((band) => ({
      pick: () => [...band.activeFlows()].sort((a, b) => (a.head?.byteSize ?? 0) - (b.head?.byteSize ?? 0))[0],
    }));
    const detector = dial(1, true);
    const { flow } = makeFlow({ saturationDetector: detector, bands: [{ priority: 0, fairness: smallest }] });
    const sizes: number[] = [];
    flow.on('dispatched', ({ item }) => sizes.push(item.byteSize));
    for (const [byteSize, name] of [
      [50, 'a'],
      [1, 'a'],
      [20, 'b'],
      [30, 'b'],
      [25, 'c'],
    ] as const) {
      void flow.enqueue({ byteSize }, key(name));
    }
    detector.turnTo(0);
    expect(sizes).toEqual([20, 25, 30, 50, 1]);
  });
});
