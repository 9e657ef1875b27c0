import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  FlowControlError,
  type FlowController,
  type FlowControllerOptions,
  FlowEvictedError,
  globalStrict,
  inFlightEviction,
  type Lease,
  largestFootprint,
  leastProgress,
  utilizationDetector,
} from '../../../src/index.js';
import type { ManualClock } from '../../../src/testing/index.js';
import { dropOf, key, leaseOf, makeFlow, record, request, runNow, turns } from '../../support/flow.js';

/** A pool of `seats`, all taken by best-effort work. */
function filled(
  seats: number,
  options: Partial<FlowControllerOptions> = {},
): { flow: FlowController; clock: ManualClock; leases: Lease[] } {
  const { flow, clock } = makeFlow({
    saturationDetector: concurrencyDetector({ maxConcurrency: seats }),
    eviction: inFlightEviction(),
    ...options,
  });
  const leases = Array.from({ length: seats }, () => runNow(flow, { fairnessId: 'batch', priority: -10 }));
  return { flow, clock, leases };
}

function evicted(leases: readonly Lease[]): number[] {
  return leases.flatMap(({ isEvicted }, i) => (isEvicted ? [i] : []));
}

describe('in-flight eviction', () => {
  it('asks the newest best-effort request to leave for a premium one, which goes when the seat is free', async () => {
    const { flow, leases } = filled(4);
    const premium = flow.enqueue({ byteSize: 1 }, key('premium', 100));
    expect(evicted(leases)).toEqual([3]);
    expect(leases[3]?.signal.aborted).toBe(true);
    expect(leases[3]?.signal.reason).toBeInstanceOf(FlowEvictedError);
    expect(flow.stats()).toMatchObject({ waiting: 1, inFlight: 4, evictedInFlight: 1 });
    leases[3]?.release();
    expect(leaseOf(await premium).priority).toBe(100);
  });

  it('stops and waits: nobody more is asked until the last victim has left', async () => {
    const { flow, leases } = filled(4);
    for (let i = 0; i < 3; i++) void flow.enqueue({ byteSize: 1 }, key('premium', 100));
    expect(evicted(leases)).toEqual([3]);
    leases[3]?.release();
    await turns();
    expect(evicted(leases)).toEqual([2, 3]);
    leases[2]?.release();
    expect(evicted(leases)).toEqual([1, 2, 3]);
  });

  it('evicts as many as the deficit needs, at most maxPerDecision', () => {
    const { flow, leases } = filled(6);
    flow.reconfigure({ saturationDetector: concurrencyDetector({ maxConcurrency: 3 }) });
    void flow.enqueue({ byteSize: 1 }, key('premium', 100));
    expect(evicted(leases)).toEqual([4, 5]);
  });

  it('is told of by an event for each that is asked to leave', () => {
    const { flow, leases } = filled(2);
    const told = record(flow, 'evicted');
    void flow.enqueue({ byteSize: 1 }, key('premium', 100));
    expect(told).toEqual([{ lease: leases[1] }]);
  });

  it('may be switched on while requests run, which are left alone', () => {
    const { flow } = makeFlow({ saturationDetector: concurrencyDetector({ maxConcurrency: 2 }) });
    const before = runNow(flow, { fairnessId: 'batch', priority: -10 });
    flow.reconfigure({ eviction: inFlightEviction() });
    const after = runNow(flow, { fairnessId: 'batch', priority: -10 });
    void flow.enqueue({ byteSize: 1 }, key('premium', 100));
    expect([before, after].map(({ isEvictable, isEvicted }) => [isEvictable, isEvicted])).toEqual([
      [false, false],
      [true, true],
    ]);
  });

  it('may take nothing that is not sheddable, whatever was asked of its lease', () => {
    const { flow } = makeFlow({ eviction: inFlightEviction() });
    const lease = runNow(flow);
    expect([lease.signal.aborted, lease.isEvictable]).toEqual([false, false]);
  });

  it('never evicts for an equal, nor anything that is not sheddable', () => {
    const { flow, leases } = filled(2);
    void flow.enqueue({ byteSize: 1 }, key('batch', -10));
    expect(evicted(leases)).toEqual([]);
    const { flow: normal } = makeFlow({ eviction: inFlightEviction() });
    const lease = runNow(normal);
    void normal.enqueue({ byteSize: 1 }, key('premium', 100));
    expect(lease.isEvicted).toBe(false);
  });

  it('writes off a victim that does not leave, and looks again by itself', () => {
    const { flow, clock, leases } = filled(2, {
      eviction: inFlightEviction({ timeoutMs: 1000 }),
      defaultRequestTtl: 0,
    });
    void flow.enqueue({ byteSize: 1 }, key('premium', 100));
    clock.advance(999);
    expect(evicted(leases)).toEqual([1]);
    clock.advance(1);
    expect(evicted(leases)).toEqual([0, 1]);
  });

  it('writes off a victim that does not leave so long after it was asked, whenever that was', () => {
    const { flow, clock, leases } = filled(2, {
      eviction: inFlightEviction({ timeoutMs: 1000 }),
      defaultRequestTtl: 0,
    });
    clock.advance(5000);
    void flow.enqueue({ byteSize: 1 }, key('premium', 100));
    clock.advance(1000);
    expect(evicted(leases)).toEqual([0, 1]);
  });

  it('evicts nobody for a pool that has no endpoint', () => {
    const pool = new EndpointPool();
    pool.add('server');
    const { flow, leases } = filled(2, { pool });
    pool.update('server', { state: 'draining' });
    void flow.enqueue({ byteSize: 1 }, key('premium', 100));
    expect([evicted(leases), flow.stats().waiting]).toEqual([[], 1]);
    pool.update('server', { state: 'ready' });
    expect(evicted(leases)).toEqual([1]);
  });

  it('gives a freed seat time to show in the reports', async () => {
    const pool = new EndpointPool();
    pool.add('server');
    const { flow, clock } = makeFlow({
      pool,
      saturationDetector: utilizationDetector({ queueDepthThreshold: 5, metricsStalenessThreshold: '1h' }),
      eviction: inFlightEviction({ graceMs: 500 }),
      defaultRequestTtl: 0,
    });
    const load = (waitingQueueSize: number): boolean =>
      pool.report('server', { waitingQueueSize, runningRequests: 8, kvCacheUsage: 0.1 });
    load(0);
    const leases = Array.from({ length: 4 }, () => runNow(flow, { fairnessId: 'batch', priority: -1 }));
    load(20);
    void flow.enqueue({ byteSize: 1 }, key('premium', 1));
    expect(evicted(leases)).toEqual([2, 3]);
    leases[2]?.release();
    leases[3]?.release();
    clock.advance(499);
    expect(evicted(leases)).toEqual([2, 3]);
    clock.advance(1);
    expect(evicted(leases)).toEqual([0, 1, 2, 3]);
  });

  it.each([
    ['least progress', leastProgress(), [1]],
    ['largest footprint', largestFootprint(), [0]],
  ])('by %s', (_, ordering, victims) => {
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 3 }),
      eviction: inFlightEviction({ ordering }),
    });
    const leases = [900, 10, 10].map((tokens) => leaseOf(flow.tryEnqueue({ byteSize: 1, tokens }, key('batch', -1))));
    for (const [i, completionTokens] of [50, 2, 60].entries()) leases[i]?.report({ completionTokens });
    void flow.enqueue({ byteSize: 1 }, key('premium', 1));
    expect(evicted(leases)).toEqual(victims);
  });

  it('contains a filter and an ordering that fail', () => {
    const broken = (): never => {
      throw new Error('broken');
    };
    const { flow, leases } = filled(2, {
      eviction: inFlightEviction({ ordering: { type: 'broken', compare: broken } }),
    });
    void flow.enqueue({ byteSize: 1 }, key('premium', 100));
    expect(evicted(leases)).toEqual([1]);
    expect(flow.stats().pluginErrors).toBeGreaterThan(0);
    const { flow: other, leases: safe } = filled(2, {
      eviction: inFlightEviction({ filter: { type: 'broken', accepts: broken } }),
    });
    void other.enqueue({ byteSize: 1 }, key('premium', 100));
    expect(evicted(safe)).toEqual([]);
  });

  it('needs no more than the analytic minimum plus one decision for a burst', async () => {
    const { flow, leases } = filled(20);
    const premium = Array.from({ length: 5 }, () => flow.enqueue({ byteSize: 1 }, key('premium', 100)));
    for (let round = 0; round < 20; round++) {
      for (const lease of leases) if (lease.isEvicted) lease.release();
      await turns();
    }
    await Promise.all(premium);
    expect(flow.stats().evictedInFlight).toBeLessThanOrEqual(5 + 2);
  });
});

describe('lease.requeue', () => {
  it('puts a victim that produced nothing back ahead of what came after it', async () => {
    const { flow, leases } = filled(1, { defaultBand: { fairness: globalStrict() } });
    const order: string[] = [];
    const ask = (name: string, priority: number): Promise<void> =>
      flow.enqueue({ byteSize: 1 }, key(name, priority)).then((outcome) => {
        order.push(name);
        leaseOf(outcome).release();
      });
    const all = [ask('later batch', -10), ask('premium', 100)];
    const again = leases[0]?.requeue().then((outcome) => {
      order.push('victim');
      leaseOf(outcome).release();
    });
    await Promise.all([...all, again]);
    expect(order).toEqual(['premium', 'victim', 'later batch']);
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0, enqueued: 4, dispatched: 4 });
  });

  it('does so once, and not for a request that produced tokens', async () => {
    const { flow, leases } = filled(1);
    const premium = flow.enqueue({ byteSize: 1 }, key('premium', 100));
    leases[0]?.report({ completionTokens: 1 });
    expect(dropOf(await leases[0]?.requeue())).toMatchObject({ type: 'EvictedOther', reason: 'evicted' });
    leaseOf(await premium).release();
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0 });
  });

  it('rejects a lease that was not evicted', async () => {
    const { leases } = filled(1);
    await expect(leases[0]?.requeue()).rejects.toThrow(
      'lease.requeue: expected a lease that was evicted, or put off by its server; got one that was neither',
    );
  });

  it("is what run does with onEvicted: 'requeue'", async () => {
    const { flow } = makeFlow({ eviction: inFlightEviction() });
    let runs = 0;
    const batch = flow.run(
      { byteSize: 1 },
      key('batch', -1),
      (lease) => {
        runs++;
        return runs === 1
          ? new Promise<string>((_, fail) => lease.signal.addEventListener('abort', () => fail(lease.signal.reason)))
          : 'done';
      },
      { onEvicted: 'requeue' },
    );
    await turns();
    await flow.run({ byteSize: 1 }, key('premium', 1), () => 'first');
    expect(await batch).toBe('done');
    expect(runs).toBe(2);
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0 });
  });

  it('ends as a drop when it happens twice', async () => {
    const { flow } = makeFlow({ eviction: inFlightEviction() });
    const batch = flow.run(
      { byteSize: 1 },
      key('batch', -1),
      (lease) =>
        new Promise<never>((_, fail) => lease.signal.addEventListener('abort', () => fail(lease.signal.reason))),
      { onEvicted: 'requeue' },
    );
    const failure = batch.catch((error: unknown) => error);
    for (let i = 0; i < 2; i++) {
      await turns();
      await flow.run({ byteSize: 1 }, key('premium', 1), () => 'first');
    }
    const error = await failure;
    expect(error).toBeInstanceOf(FlowControlError);
    expect((error as FlowControlError).drop.reason).toBe('evicted');
  });
});

describe('what eviction is after', () => {
  it('is told in units of saturation, with what it has coming', async () => {
    const { flow } = makeFlow({
      eviction: inFlightEviction({ maxPerDecision: 1 }),
      saturationDetector: (pool) => pool.inFlightRequests / 2,
    });
    const leases = [1, 2].map(() => leaseOf(flow.tryEnqueue(request, key('batch', -1))));
    expect(flow.stats().reclaim).toEqual({ target: 0, pending: 0 });
    const urgent = flow.enqueue(request, key('urgent', 1));
    expect(flow.stats().reclaim).toEqual({ target: 0, pending: 0.5 });
    for (const lease of leases) lease.release();
    expect((await urgent).type).toBe('Dispatched');
    expect(flow.stats().reclaim).toEqual({ target: 0, pending: 0 });
    expect(makeFlow().flow.stats().reclaim).toBeUndefined();
  });
});

describe('what eviction goes by', () => {
  it('is no failing detector', async () => {
    let isBroken = false;
    const { flow } = makeFlow({
      eviction: inFlightEviction(),
      saturationDetector: (pool) => {
        if (isBroken) throw new Error('no signal');
        return pool.inFlightRequests / 2;
      },
    });
    const lease = leaseOf(flow.tryEnqueue(request, key('batch', -1)));
    isBroken = true;
    void flow.enqueue(request, key('urgent', 1));
    expect([lease.isEvicted, flow.stats().waiting]).toEqual([false, 1]);
  });

  it("is the band's own detector where it has one", async () => {
    const { flow } = makeFlow({
      eviction: inFlightEviction(),
      saturationDetector: () => 0.5,
      bands: [{ priority: 1, saturationDetector: (pool) => pool.inFlightRequests }],
    });
    const lease = leaseOf(flow.tryEnqueue(request, key('batch', -1)));
    const urgent = flow.enqueue(request, key('urgent', 1));
    expect(lease.isEvicted).toBe(true);
    lease.release();
    expect((await urgent).type).toBe('Dispatched');
  });
});
