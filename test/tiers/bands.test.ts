import { describe, expect, it } from 'vitest';
import {
  EndpointPool,
  edf,
  type FlowController,
  fcfs,
  globalStrict,
  overviewOf,
  roundRobin,
  sloDeadline,
} from '../../src/index.js';
import { dial, dispatchOrder, dropOf, key, makeFlow, record, request, runNow } from '../support/flow.js';

function priorities(flow: FlowController): number[] {
  return overviewOf(flow, { flows: 'all' }).bands.map(({ priority }) => priority);
}

describe('bands', () => {
  it('exist as configured, priority 0 always among them, highest first', () => {
    expect(priorities(makeFlow({ bands: [-5, 100, 3].map((priority) => ({ priority })) }).flow)).toEqual([
      100, 3, 0, -5,
    ]);
    expect(priorities(makeFlow().flow)).toEqual([0]);
  });

  it('are made on first use from a template, one for negative priorities', () => {
    const { flow } = makeFlow({
      defaultBand: { limits: { maxRequests: 7 }, fairness: globalStrict(), ordering: edf(), requestTtl: '7s' },
      defaultNegativeBand: { limits: { maxRequests: 3 }, flowLimits: { maxBytes: 90 }, ordering: sloDeadline() },
      defaultRequestTtl: '9s',
      saturationDetector: () => 0,
    });
    for (const priority of [4, -4]) runNow(flow, { priority });
    const [above, , below] = overviewOf(flow, { flows: 'all' }).bands;
    expect(above).toMatchObject({
      priority: 4,
      isConfigured: false,
      limits: { maxRequests: 7 },
      requestTtlMs: 7000,
      fairness: globalStrict().type,
      ordering: edf().type,
    });
    expect(below).toMatchObject({
      priority: -4,
      isConfigured: false,
      limits: { maxRequests: 3 },
      flowLimits: { maxRequests: Infinity, maxBytes: 90 },
      requestTtlMs: 9000,
      fairness: roundRobin().type,
      ordering: sloDeadline().type,
    });
  });

  it('of negative priorities take the other template when there is no own', () => {
    const { flow } = makeFlow({ defaultBand: { limits: { maxRequests: 7 } } });
    runNow(flow, { priority: -4 });
    expect(overviewOf(flow, { flows: 'all' }).bands[1]).toMatchObject({
      priority: -4,
      limits: { maxRequests: 7 },
      ordering: fcfs().type,
    });
  });

  it('give a request their TTL even when they are made for it', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true), defaultNegativeBand: { requestTtl: 50 } });
    void flow.enqueue(request, key('a', -2));
    clock.advance(50);
    expect(flow.stats().outcomes.EvictedTTL).toBe(1);
  });

  it('go strictly by priority, safe integers of any size', () => {
    const detector = dial(1, true);
    const { flow } = makeFlow({ saturationDetector: detector });
    const order = dispatchOrder(flow);
    const all = [0, -1, Number.MIN_SAFE_INTEGER, 7, Number.MAX_SAFE_INTEGER, 1000, -50];
    for (const priority of all) void flow.enqueue(request, key(String(priority), priority));
    detector.turnTo(0);
    expect(order.map(Number)).toEqual([...all].sort((a, b) => b - a));
  });

  it('that are empty block nobody', () => {
    const { flow } = makeFlow({ bands: [{ priority: 1000 }, { priority: 500 }] });
    const held = runNow(flow);
    void flow.enqueue(request, key('low', -1));
    held.release();
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 1 });
  });

  it('overtaken by a higher one get their turn as soon as that is empty', () => {
    const { flow } = makeFlow();
    const order = dispatchOrder(flow);
    let held = runNow(flow);
    flow.on('dispatched', ({ lease }) => {
      held = lease;
    });
    for (const [name, priority] of [
      ['a', 0],
      ['b', 5],
      ['c', 0],
      ['d', 5],
    ] as const) {
      void flow.enqueue(request, key(name, priority));
    }
    held.release();
    void flow.enqueue(request, key('e', 9));
    for (let i = 0; i < 5; i++) held.release();
    expect(order.slice(1)).toEqual(['b', 'e', 'd', 'a', 'c']);
  });
});

describe('maxBands', () => {
  it('bounds how many there are, the configured ones included', async () => {
    const { flow } = makeFlow({ saturationDetector: dial(1, true), maxBands: 4, bands: [{ priority: 100 }] });
    for (const priority of [1, 2, 3, 4]) void flow.enqueue(request, key('a', priority));
    expect(priorities(flow)).toEqual([100, 2, 1, 0]);
    expect(flow.stats().outcomes.RejectedCapacity).toBe(2);
    expect(dropOf(await flow.enqueue(request, key('a', 5)))).toMatchObject({
      type: 'RejectedCapacity',
      reason: 'max-bands',
      priority: 5,
    });
    expect(dropOf(await flow.enqueue(request, key('a', 5))).limit).toBeUndefined();
  });

  it('is a matter of the empty pool while there are no endpoints', async () => {
    const { flow } = makeFlow({ pool: new EndpointPool(), maxBands: 1 });
    expect(dropOf(await flow.enqueue(request, key('a', 5)))).toMatchObject({
      type: 'RejectedNoEndpoints',
      reason: 'max-bands',
    });
  });

  it('lets the band idle longest make room, never one that is configured or in use', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(0, true), maxBands: 4, bands: [{ priority: 100 }] });
    const removed = record(flow, 'bandRemoved');
    for (const priority of [3, 2]) {
      runNow(flow, { priority });
      clock.advance(10);
    }
    runNow(flow, { priority: 3 });
    clock.advance(10);
    runNow(flow, { priority: 7 });
    expect(removed).toEqual([{ priority: 2 }]);
    runNow(flow, { priority: 8 });
    expect(removed).toEqual([{ priority: 2 }, { priority: 3 }]);
    expect(priorities(flow)).toEqual([100, 8, 7, 0]);
  });

  it('keeps a band whose fairness policy still waits for the end of a request', async () => {
    const fairness = { type: 'hears', createSelector: () => ({ pick: () => undefined, settled: () => {} }) };
    const { flow } = makeFlow({ saturationDetector: dial(0, true), maxBands: 2, defaultBand: { fairness } });
    const lease = runNow(flow, { priority: 5 });
    expect(dropOf(flow.tryEnqueue(request, key('a', 6))).reason).toBe('max-bands');
    lease.release();
    runNow(flow, { priority: 6 });
    expect(priorities(flow)).toEqual([6, 0]);
  });

  it('makes a lease of a removed band harmless', () => {
    const { flow } = makeFlow({ saturationDetector: dial(0, true), maxBands: 2 });
    const lease = runNow(flow, { priority: 5 });
    runNow(flow, { priority: 6 });
    expect(priorities(flow)).toEqual([6, 0]);
    expect([lease.priority, lease.isReleased]).toEqual([5, false]);
    lease.release();
    expect(flow.stats()).toMatchObject({ inFlight: 1, released: 1, bands: 2 });
  });
});

describe('an idle band that was made on first use', () => {
  it('goes after bandIdleTimeout, and not before', () => {
    const { flow, clock } = makeFlow({ flowIdleTimeout: '1m', bandIdleTimeout: '2m' });
    runNow(flow, { priority: 5 }).release();
    clock.advance(119_999);
    expect(priorities(flow)).toEqual([5, 0]);
    clock.advance(1);
    expect(priorities(flow)).toEqual([0]);
  });

  it('stays as long as requests wait in it', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true), bandIdleTimeout: '10m' });
    void flow.enqueue({ ...request, ttlMs: 0 }, key('a', 5));
    clock.advance(1e8);
    expect(overviewOf(flow, { flows: 'all' }).bands[0]).toMatchObject({ priority: 5, waiting: 1 });
  });

  it('counts its idle time from its last request', () => {
    const { flow, clock } = makeFlow({
      saturationDetector: dial(1, true),
      flowIdleTimeout: '1m',
      bandIdleTimeout: '2m',
    });
    void flow.enqueue({ ...request, ttlMs: 100_000 }, key('a', 5));
    clock.advance(100_000);
    expect(flow.stats().waiting).toBe(0);
    clock.advance(119_999);
    expect(priorities(flow)).toEqual([5, 0]);
    clock.advance(1);
    expect(priorities(flow)).toEqual([0]);
  });

  it('is collected in passing by the requests of others', () => {
    const { flow, clock } = makeFlow({ saturationDetector: () => 0, flowIdleTimeout: '1m', bandIdleTimeout: '1m' });
    const removed = record(flow, 'bandRemoved');
    runNow(flow, { priority: 5 });
    clock.advance(60_000);
    runNow(flow, { priority: 0 });
    expect(removed).toEqual([{ priority: 5 }]);
  });

  it('is not confused with the one that takes its place, when its next request comes as late as that', async () => {
    const { flow, clock } = makeFlow({ bandIdleTimeout: '10m' });
    runNow(flow, { priority: 5 }).release();
    const held = runNow(flow);
    clock.advance(700_000);
    const waiting = [flow.enqueue(request, key('a', 5)), flow.enqueue(request, key('b', 5))];
    const { bands, stats } = overviewOf(flow, { flows: 'all' });
    expect(bands.map(({ priority, waiting }) => [priority, waiting])).toEqual([
      [5, 2],
      [0, 0],
    ]);
    expect(stats).toMatchObject({ waiting: 2, bands: 2 });
    held.release();
    await flow.close();
    expect((await Promise.all(waiting)).map(({ type }) => type)).toEqual(['Dispatched', 'EvictedOther']);
  });
});
