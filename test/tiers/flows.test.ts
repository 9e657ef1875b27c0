import { describe, expect, it } from 'vitest';
import {
  type FlowController,
  type FlowControllerOptions,
  type FlowFairnessPolicy,
  overviewOf,
  roundRobin,
} from '../../src/index.js';
import { dial, dropOf, key, makeFlow, record, request, runNow } from '../support/flow.js';

const fair: Partial<FlowControllerOptions> = { bands: [{ priority: 0, fairness: roundRobin() }] };

function waitingFlows(flow: FlowController): string[] {
  return flow.figures().bands.flatMap((band) => [...band.waitingIds()]);
}

describe('a fairness ID in a table of flows that is full', () => {
  it('stays in the flow that it shares until nothing waits there, so that its requests keep their order', () => {
    const detector = dial(1, true);
    const { flow } = makeFlow({ ...fair, saturationDetector: detector, maxFlows: 3, defaultRequestTtl: 0 });
    const order: number[] = [];
    flow.on('dispatched', ({ item }) => order.push(Reflect.get(item.request as object, 'n') as number));
    const abort = new AbortController();
    const send = (name: string, n: number, signal?: AbortSignal): void =>
      void flow.enqueue({ ...request, n, signal } as typeof request, key(name));
    send('a', 0);
    for (const name of ['b', 'd']) send(name, 1, abort.signal);
    send('c', 2);
    abort.abort();
    // Places are free now, but the first request of c waits in a flow that it shares.
    for (const n of [3, 4, 5]) send('c', n);
    detector.turnTo(0);
    expect(order.filter((n) => n >= 2)).toEqual([2, 3, 4, 5]);
    detector.turnTo(1);
    send('c', 6);
    expect(waitingFlows(flow)).toEqual(['c']);
  });
});

describe('a flow', () => {
  it('is the pair of fairness ID and priority', () => {
    const { flow } = makeFlow({ saturationDetector: dial(1, true) });
    for (const [name, priority] of [
      ['a', 0],
      ['a', 1],
      ['b', 0],
      ['a', 0],
    ] as const) {
      void flow.enqueue(request, key(name, priority));
    }
    expect(flow.stats().flows).toBe(3);
    expect(
      overviewOf(flow, { flows: 'all' }).bands.map((band) =>
        band.flows.map(({ fairnessId, waiting }) => [fairnessId, waiting]),
      ),
    ).toEqual([
      [['a', 1]],
      [
        ['a', 2],
        ['b', 1],
      ],
    ]);
  });

  it.each([['__proto__'], ['constructor'], [' '], ['\u0000'], ['💡'], ['ſ'], ['a'.repeat(256)]])(
    'may be called %j',
    (name) => {
      const { flow } = makeFlow({ saturationDetector: dial(1, true), ...fair });
      void flow.enqueue(request, key(name));
      expect(waitingFlows(flow)).toEqual([name]);
    },
  );

  it('tells how long its oldest request has waited', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true), ...fair });
    const abort = new AbortController();
    void flow.enqueue({ ...request, signal: abort.signal }, key());
    clock.advance(30);
    void flow.enqueue(request, key());
    clock.advance(50);
    const idle = {
      fairnessId: 'a',
      priority: 0,
      weight: 1,
      isHeld: false,
      inFlight: 0,
      inFlightTokens: 0,
      isAtCap: false,
      cap: undefined,
    };
    expect(overviewOf(flow, { flows: 'all' }).bands[0]?.flows).toEqual([
      { ...idle, waiting: 2, waitingBytes: 20, oldestWaitMs: 80 },
    ]);
    abort.abort();
    expect(overviewOf(flow, { flows: 'all' }).bands[0]?.flows).toEqual([
      { ...idle, waiting: 1, waitingBytes: 10, oldestWaitMs: 50 },
    ]);
  });
});

describe('an idle flow', () => {
  it('is forgotten after flowIdleTimeout, and not before', () => {
    const { flow, clock } = makeFlow({ flowIdleTimeout: '5m', ...fair });
    const removed = record(flow, 'flowRemoved');
    runNow(flow, key('a'));
    clock.advance(299_999);
    expect(flow.stats().flows).toBe(1);
    clock.advance(1);
    expect(flow.stats().flows).toBe(0);
    expect(removed).toEqual([{ fairnessId: 'a', priority: 0 }]);
  });

  it('is not forgotten while it has requests waiting, or running when its policy asks for their end', () => {
    const hears: FlowFairnessPolicy = {
      type: 'hears',
      createSelector: () => ({ pick: () => undefined, settled: () => {} }),
    };
    const { flow, clock } = makeFlow({ flowIdleTimeout: '5m', bands: [{ priority: 0, fairness: hears }] });
    const lease = runNow(flow, key('runs'));
    void flow.enqueue({ ...request, ttlMs: 0 }, key('waits'));
    clock.advance(1e9);
    expect(flow.stats().flows).toBe(2);
    lease.release();
    clock.advance(299_999);
    expect(flow.stats()).toMatchObject({ flows: 2, waiting: 0 });
    clock.advance(1);
    expect(flow.stats().flows).toBe(1);
  });

  it('counts its idle time from its last request', () => {
    const { flow, clock } = makeFlow({ flowIdleTimeout: '1m', saturationDetector: dial(1, true), ...fair });
    for (let i = 0; i < 5; i++) {
      void flow.enqueue({ ...request, ttlMs: 1000 }, key());
      clock.advance(50_000);
    }
    expect(flow.stats().flows).toBe(1);
    clock.advance(11_000);
    expect(flow.stats().flows).toBe(0);
  });

  it('is forgotten in passing, a few at a time, by the requests of others', () => {
    const { flow, clock } = makeFlow({ flowIdleTimeout: '1m', saturationDetector: () => 0, ...fair });
    for (let i = 0; i < 100; i++) runNow(flow, key(`f${i}`));
    const removed = record(flow, 'flowRemoved');
    clock.advance(60_000);
    runNow(flow, key('new'));
    expect(removed.length).toBeGreaterThan(0);
    expect(removed.length).toBeLessThan(40);
    for (let i = 0; i < 15; i++) runNow(flow, key(`new${i}`));
    expect(removed).toHaveLength(100);
  });

  it('is told to its fairness policy, which may forget it too', () => {
    const known = new Set<string>();
    const fairness: FlowFairnessPolicy = {
      type: 'remembers',
      createSelector: () => ({
        pick: () => undefined,
        dispatched: ({ fairnessId }) => known.add(fairnessId),
        flowRemoved: ({ fairnessId }) => known.delete(fairnessId),
      }),
    };
    const { flow, clock } = makeFlow({
      flowIdleTimeout: '1m',
      saturationDetector: () => 0,
      bands: [{ priority: 0, fairness }],
    });
    for (const name of ['a', 'b', 'c']) runNow(flow, key(name));
    expect(known).toEqual(new Set(['a', 'b', 'c']));
    clock.advance(60_000);
    flow.stats();
    expect(known.size).toBe(0);
  });
});

describe('maxFlows', () => {
  it('makes new fairness IDs share 64 overflow flows in each band, while all flows are in use', () => {
    const { flow } = makeFlow({
      saturationDetector: dial(1, true),
      maxFlows: 3,
      limits: { maxRequests: 1e6 },
      ...fair,
    });
    for (let i = 0; i < 1000; i++) void flow.enqueue(request, key(`f${i}`));
    const names = waitingFlows(flow);
    expect(names.slice(0, 3)).toEqual(['f0', 'f1', 'f2']);
    expect(names.length).toBeGreaterThan(40);
    expect(names.length).toBeLessThanOrEqual(3 + 64);
    expect(flow.stats()).toMatchObject({ flows: names.length, waiting: 1000 });
  });

  it('sends one fairness ID always to the same overflow flow, and names it in its drops', async () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true), maxFlows: 1, ...fair });
    void flow.enqueue(request, key('first'));
    const all = Array.from({ length: 5 }, () => flow.enqueue({ ...request, ttlMs: 10 }, key('second')));
    expect(overviewOf(flow, { flows: 'all' }).bands[0]?.flows.map(({ waiting }) => waiting)).toEqual([5, 1]);
    clock.advance(10);
    for (const outcome of all) expect(dropOf(await outcome).fairnessId).toBe('second');
  });

  it('lets the flow idle longest make room', () => {
    const { flow, clock } = makeFlow({ saturationDetector: () => 0, maxFlows: 3, ...fair });
    const removed = record(flow, 'flowRemoved');
    for (const name of ['a', 'b', 'c', 'a', 'd', 'e']) {
      runNow(flow, key(name));
      clock.advance(1);
    }
    expect(removed.map(({ fairnessId }) => fairnessId)).toEqual(['b', 'c']);
    expect(flow.stats().flows).toBe(3);
  });

  it('counts the flows of all bands together', () => {
    const { flow } = makeFlow({ saturationDetector: dial(1, true), maxFlows: 2 });
    for (const priority of [0, 1, 2]) void flow.enqueue(request, key('a', priority));
    expect(waitingFlows(flow).filter((name) => name === 'a')).toHaveLength(2);
  });

  it('keeps fairness IDs that wait and go from costing more either', () => {
    const { flow, clock } = makeFlow({
      saturationDetector: dial(1, true),
      maxFlows: 50,
      limits: { maxRequests: 100 },
      ...fair,
    });
    for (let i = 0; i < 20_000; i++) {
      void flow.enqueue({ ...request, ttlMs: 30 }, key(`tenant-${i}`));
      clock.advance(1);
    }
    expect(flow.stats().flows).toBeLessThanOrEqual(50 + 64);
    expect(flow.stats().waiting).toBe(29);
  });
});

it('very long fairness IDs share overflow flows, so that names fill no memory', () => {
  const { flow } = makeFlow({ saturationDetector: dial(1, true), limits: { maxRequests: 1e6 }, ...fair });
  for (let i = 0; i < 500; i++) void flow.enqueue(request, key(`${i}${'x'.repeat(10_000)}`));
  const names = waitingFlows(flow);
  expect(names.length).toBeLessThanOrEqual(64);
  expect(Math.max(...names.map(({ length }) => length))).toBeLessThan(40);
});

it('the limits of a flow count for those that share it together', async () => {
  const { flow } = makeFlow({
    saturationDetector: dial(1, true),
    maxFlows: 1,
    bands: [{ priority: 0, flowLimits: { maxRequests: 2 }, fairness: roundRobin() }],
  });
  void flow.enqueue(request, key('named'));
  const long = `${'x'.repeat(300)}`;
  for (let i = 0; i < 2; i++) void flow.enqueue(request, key(long));
  expect(dropOf(await flow.enqueue(request, key(long))).limit).toMatchObject({ scope: 'flow', used: 2 });
  void flow.enqueue(request, key('named'));
  expect(flow.stats().waiting).toBe(4);
});
