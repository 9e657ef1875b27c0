import { describe, expect, it } from 'vitest';
import { concurrencyDetector, EndpointPool, inFlightEviction, type Lease } from '../../../src/index.js';
import { FiniteClock } from '../../support/clocks.js';
import { dropOf, key, makeFlow, request, runNow } from '../../support/flow.js';

describe('a victim that does not leave', () => {
  it('is written off, and when nobody else can be asked the controller comes to rest', () => {
    const clock = new FiniteClock();
    const { flow } = makeFlow({ clock, eviction: inFlightEviction({ timeoutMs: 1000 }), defaultRequestTtl: 0 });
    const victim = runNow(flow, { priority: -1 });
    void flow.enqueue(request, key('premium', 9));
    expect(victim.isEvicted).toBe(true);
    clock.advance(60_000);
    expect(clock.timersSet).toBeLessThan(10);
    expect(flow.stats()).toMatchObject({ waiting: 1, inFlight: 1, evictedInFlight: 1 });
    victim.release();
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 1 });
  });

  it('is no reason to look again while the pool is empty', () => {
    const clock = new FiniteClock();
    const pool = new EndpointPool();
    pool.add('e');
    const { flow } = makeFlow({
      clock,
      pool,
      eviction: inFlightEviction({ timeoutMs: 1000 }),
      defaultRequestTtl: 0,
      noEndpointRequestTtl: 0,
    });
    runNow(flow, { priority: -1 });
    void flow.enqueue(request, key('premium', 9));
    pool.remove('e');
    clock.advance(60_000);
    expect(clock.timersSet).toBeLessThan(10);
    expect(flow.stats().waiting).toBe(1);
  });
});

describe('a victim that leaves when only flows at their caps wait', () => {
  it('is no reason to look again at once', () => {
    const clock = new FiniteClock();
    const { flow } = makeFlow({
      clock,
      eviction: inFlightEviction({ timeoutMs: 1000 }),
      defaultRequestTtl: 0,
      saturationDetector: concurrencyDetector({ maxConcurrency: 2 }),
      flows: { capped: { maxInFlight: { requests: 1 } } },
    });
    runNow(flow, { priority: -1 });
    const capped = runNow(flow, { fairnessId: 'capped', priority: 0 });
    const impatient = new AbortController();
    void flow.enqueue({ ...request, signal: impatient.signal }, key('premium', 9));
    void flow.enqueue(request, key('capped', 0));
    impatient.abort();
    clock.advance(60_000);
    expect(clock.timersSet).toBeLessThan(10);
    capped.release();
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 2 });
  });
});

describe('a request that is put back', () => {
  function putBack(): {
    flow: ReturnType<typeof makeFlow>['flow'];
    clock: ReturnType<typeof makeFlow>['clock'];
    drops: [number, string][];
  } {
    const { flow, clock } = makeFlow({
      eviction: inFlightEviction(),
      defaultRequestTtl: 1000,
      saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    });
    const drops: [number, string][] = [];
    flow.on('dropped', ({ outcome }) => drops.push([clock.now(), outcome.fairnessId]));
    let victim: Lease | undefined = runNow(flow, { fairnessId: 'victim', priority: -1 });
    clock.advance(100);
    void flow.enqueue(request, key('waits', -1));
    clock.advance(100);
    void flow.enqueue({ ...request, ttlMs: 0 }, key('premium', 9));
    clock.advance(100);
    void victim.requeue();
    victim = undefined;
    return { flow, clock, drops };
  }

  it('has a fresh TTL', () => {
    const { clock, drops } = putBack();
    clock.advance(10_000);
    expect(drops).toEqual([
      [1100, 'waits'],
      [1300, 'victim'],
    ]);
  });

  it('and those behind it keep their deadlines through a reconfiguration', () => {
    const { flow, clock, drops } = putBack();
    flow.reconfigure({ limits: { maxRequests: 50 } });
    clock.advance(10_000);
    expect(drops).toEqual([
      [1100, 'waits'],
      [1300, 'victim'],
    ]);
  });

  it('leaves with the others when the controller closes', async () => {
    const { flow, clock } = putBack();
    await flow.close();
    expect(flow.stats()).toMatchObject({ waiting: 0, outcomes: { EvictedOther: 2 } });
    expect(clock.pendingTimers).toBe(0);
  });

  it('is dropped when its signal has aborted meanwhile, or the controller closes', async () => {
    const { flow } = makeFlow({ eviction: inFlightEviction() });
    const abort = new AbortController();
    const outcome = await flow.enqueue({ ...request, signal: abort.signal }, key('batch', -1));
    void flow.enqueue(request, key('premium', 9));
    abort.abort();
    if (outcome.type !== 'Dispatched') throw new Error('not dispatched');
    expect(dropOf(await outcome.lease.requeue())).toMatchObject({ type: 'RejectedOther', reason: 'cancelled' });
    expect(flow.stats()).toMatchObject({ enqueued: 3, dispatched: 2, rejected: 1, waiting: 0 });
  });
});
