import { describe, expect, it } from 'vitest';
import { EndpointPool, edf, overviewOf, roundRobin } from '../../../src/index.js';
import { dial, key, leaseOf, makeFlow, request, runNow } from '../../support/flow.js';

describe('stats', () => {
  it('start at zero', () => {
    expect(makeFlow().flow.stats()).toMatchObject({
      state: 'open',
      enqueued: 0,
      dispatched: 0,
      rejected: 0,
      evicted: 0,
      waiting: 0,
      waitingBytes: 0,
      inFlight: 0,
      inFlightTokens: 0,
      released: 0,
      bands: 1,
      flows: 0,
      saturation: 0,
      isGateClosed: false,
      pluginErrors: 0,
    });
  });

  it('count every request by its outcome', async () => {
    const pool = new EndpointPool();
    pool.add('e');
    const { flow, clock } = makeFlow({ pool, limits: { maxBytes: 100 }, noEndpointRequestTtl: 1000 });
    const abort = new AbortController();
    const lease = leaseOf(flow.tryEnqueue({ ...request, tokens: 9 }, key()));
    void flow.enqueue({ byteSize: 101 }, key());
    void flow.enqueue({ byteSize: 1, signal: abort.signal }, key());
    void flow.enqueue({ byteSize: 1, ttlMs: 10 }, key());
    clock.advance(10);
    abort.abort();
    void flow.enqueue({ byteSize: 1, signal: abort.signal }, key());
    void flow.enqueue({ byteSize: 7 }, key());
    expect(flow.stats()).toMatchObject({
      waiting: 1,
      waitingBytes: 7,
      inFlight: 1,
      inFlightTokens: 9,
      released: 0,
      isGateClosed: true,
    });
    lease.release();
    pool.remove('e');
    void flow.enqueue({ byteSize: 101 }, key());
    void flow.enqueue({ byteSize: 1 }, key());
    clock.advance(1000);
    void flow.enqueue({ byteSize: 1 }, key());
    await flow.close();
    expect(flow.stats()).toMatchObject({
      state: 'closed',
      enqueued: 9,
      dispatched: 2,
      rejected: 3,
      evicted: 4,
      outcomes: {
        Dispatched: 2,
        RejectedCapacity: 1,
        RejectedNoEndpoints: 1,
        RejectedOther: 1,
        EvictedTTL: 1,
        EvictedNoEndpoints: 1,
        EvictedContextCancelled: 1,
        EvictedOther: 1,
      },
      waiting: 0,
      released: 1,
    });
  });

  it('are a copy', () => {
    const { flow } = makeFlow();
    const { outcomes } = flow.stats();
    (outcomes as { Dispatched: number }).Dispatched = 99;
    expect(flow.stats().outcomes.Dispatched).toBe(0);
  });
});

describe('an overview of all flows', () => {
  it('shows everything at one instant', () => {
    const pool = new EndpointPool();
    pool.add('e', { labels: { zone: 'a' } });
    const detector = dial(0, true);
    const { flow, clock } = makeFlow({
      pool,
      saturationDetector: detector,
      limits: { maxRequests: 100 },
      bands: [{ priority: 3, fairness: roundRobin(), ordering: edf(), requestTtl: '9s', limits: { maxRequests: 50 } }],
    });
    leaseOf(flow.tryEnqueue({ ...request, tokens: 5 }, key('a', 3)));
    pool.report('e', { waitingQueueSize: 1, runningRequests: 2, kvCacheUsage: 0.5 });
    detector.value = 1.5;
    clock.advance(100);
    void flow.enqueue({ byteSize: 4 }, key('a', 3));
    clock.advance(50);
    void flow.enqueue({ byteSize: 6 }, key('b', 3));
    void flow.enqueue({ byteSize: 8 }, key('a', 3));
    const { atMs, stats, limits, bands, endpoints } = overviewOf(flow, { flows: 'all' });
    expect(atMs).toBe(150);
    expect(stats).toMatchObject({ waiting: 3, waitingBytes: 18, inFlight: 1, saturation: 1.5, isGateClosed: true });
    expect(limits).toEqual({ maxRequests: 100, maxBytes: 2 ** 30 });
    expect(bands).toHaveLength(2);
    expect(bands[0]).toMatchObject({
      priority: 3,
      isConfigured: true,
      waiting: 3,
      waitingBytes: 18,
      limits: { maxRequests: 50, maxBytes: 1e9 },
      flowLimits: { maxRequests: Infinity, maxBytes: 5e8 },
      requestTtlMs: 9000,
      ceiling: 1,
      fairness: 'round-robin-fairness-policy',
      ordering: 'edf-ordering-policy',
      dispatchedPerSecond: 1,
      knownFlows: 2,
      flows: [
        { fairnessId: 'a', waiting: 2, waitingBytes: 12, oldestWaitMs: 50 },
        { fairnessId: 'b', waiting: 1, waitingBytes: 6, oldestWaitMs: 0 },
      ],
    });
    expect(bands[1]).toMatchObject({ priority: 0, waiting: 0, dispatchedPerSecond: 0, flows: [] });
    expect(endpoints).toMatchObject([
      {
        id: 'e',
        labels: { zone: 'a' },
        inFlightRequests: 1,
        inFlightTokens: 5,
        metrics: { waitingQueueSize: 1, sampledAtMs: 0 },
      },
    ]);
  });

  it('shows no endpoint where there is no pool', () => {
    const { flow } = makeFlow();
    runNow(flow);
    expect(overviewOf(flow, { flows: 'all' }).endpoints).toEqual([]);
  });

  it('costs no flow its place, and a request its', () => {
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness: roundRobin() }] });
    const held = runNow(flow);
    const order: string[] = [];
    flow.on('dispatched', ({ item, lease }) => {
      order.push(item.fairnessId);
      queueMicrotask(() => lease.release());
    });
    for (const name of ['a', 'a', 'b']) void flow.enqueue(request, key(name));
    for (let i = 0; i < 5; i++) overviewOf(flow, { flows: 'all' });
    held.release();
    return flow.close({ drainMs: 100 }).then(() => expect(order).toEqual(['a', 'b', 'a']));
  });
});
