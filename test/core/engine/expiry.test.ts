import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  type FlowRequest,
  type Outcome,
  type OutcomeType,
  overviewOf,
} from '../../../src/index.js';
import type { ManualClock } from '../../../src/testing/index.js';
import { Random } from '../../property/random.js';
import { BlockedClock, CountingClock, EarlyClock, TurnClock } from '../../support/clocks.js';
import { dial, dropOf, key, leaseOf, makeFlow, record, request, runNow } from '../../support/flow.js';

/** `[instant, byteSize]` of every eviction: sizes name the requests. */
function evictions(flow: ReturnType<typeof makeFlow>['flow'], clock: ManualClock): [number, number][] {
  const log: [number, number][] = [];
  flow.on('dropped', ({ request }) => log.push([clock.now(), (request as FlowRequest).byteSize]));
  return log;
}

describe('a request that waits', () => {
  it.each([
    ['the default of 60 s', {}, undefined, 60_000],
    ['the default that was set', { defaultRequestTtl: '2s' }, undefined, 2000],
    ['the TTL of its band', { defaultRequestTtl: '2s', bands: [{ priority: 0, requestTtl: 500 }] }, undefined, 500],
    ['its own TTL', { defaultRequestTtl: '2s', bands: [{ priority: 0, requestTtl: 500 }] }, 70, 70],
    ['its own TTL, though longer', { bands: [{ priority: 0, requestTtl: 500 }] }, 70_000, 70_000],
    ['a fraction of a millisecond', {}, 0.25, 0.25],
  ] as const)('is evicted exactly at the end of %s', async (_, options, ttlMs, expectedMs) => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true), ...options });
    const waiting = flow.enqueue({ ...request, ttlMs }, key());
    clock.advance(expectedMs - 0.125);
    expect(flow.stats()).toMatchObject({ waiting: 1, evicted: 0 });
    clock.advance(0.875);
    expect(flow.stats()).toMatchObject({ waiting: 0, waitingBytes: 0 });
    expect(dropOf(await waiting)).toMatchObject({ type: 'EvictedTTL', reason: 'ttl-expired' });
    expect(clock.pendingTimers).toBe(0);
  });

  it.each([
    ['its TTL is 0', { ttlMs: 0 }, {}],
    ['its TTL is Infinity', { ttlMs: Number.POSITIVE_INFINITY }, {}],
    ['the TTL of its band is 0', {}, { bands: [{ priority: 0, requestTtl: 0 }] }],
    ['the default TTL is 0', {}, { defaultRequestTtl: 0 }],
    ['the default TTL is Infinity', {}, { defaultRequestTtl: Number.POSITIVE_INFINITY }],
  ])('waits for ever when %s', async (_, own, options) => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true), ...options });
    const waiting = flow.enqueue({ ...request, ...own }, key());
    clock.advance(1e12);
    // The timer never comes; it keeps the process alive for what waits.
    expect([flow.stats().waiting, clock.pendingTimers]).toEqual([1, 1]);
    await flow.close();
    expect(dropOf(await waiting).type).toBe('EvictedOther');
    expect(clock.pendingTimers).toBe(0);
  });

  it('tells how long it waited', async () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true) });
    clock.advance(1234);
    const waiting = flow.enqueue({ ...request, ttlMs: 40 }, key());
    clock.advance(500);
    expect(dropOf(await waiting)).toMatchObject({ queuedMs: 40, fairnessId: 'a', priority: 0 });
  });

  it('frees its place in the limits in the same turn', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true), limits: { maxRequests: 1 } });
    const log: string[] = [];
    flow.on('dropped', ({ outcome }) => {
      log.push(outcome.type);
      if (outcome.type === 'EvictedTTL') void flow.enqueue(request, key('next'));
    });
    void flow.enqueue({ ...request, ttlMs: 40 }, key());
    clock.advance(40);
    expect(log).toEqual(['EvictedTTL']);
    expect(overviewOf(flow, { flows: 'all' }).bands[0]?.flows.map(({ fairnessId }) => fairnessId)).toEqual(['next']);
  });

  it('is not dispatched when its time is up, although the timer is late', async () => {
    const clock = new BlockedClock();
    const { flow } = makeFlow({ clock });
    const held = runNow(flow);
    const overdue = flow.enqueue({ ...request, ttlMs: 100 }, key('overdue'));
    const next = flow.enqueue({ ...request, ttlMs: 1000 }, key('next'));
    clock.block(100);
    held.release();
    expect(dropOf(await overdue).type).toBe('EvictedTTL');
    expect(leaseOf(await next).fairnessId).toBe('next');
    clock.unblock();
    expect(flow.stats().outcomes).toMatchObject({ Dispatched: 2, EvictedTTL: 1 });
  });

  it('holds no place in the limits when its time is up, although the timer is late', async () => {
    const clock = new BlockedClock();
    const { flow } = makeFlow({ clock, saturationDetector: dial(1, true), limits: { maxRequests: 2 } });
    const waiting = [100, 5000].map((ttlMs) => flow.enqueue({ ...request, ttlMs }, key()));
    clock.block(100);
    void flow.enqueue(request, key('next'));
    expect(dropOf(await waiting[0])).toMatchObject({ type: 'EvictedTTL', queuedMs: 100 });
    expect(flow.stats()).toMatchObject({ waiting: 2, rejected: 0 });
    expect(dropOf(await flow.enqueue(request, key())).reason).toBe('global-max-requests');
  });

  it('is never touched by its TTL once it was dispatched', async () => {
    const { flow, clock } = makeFlow();
    const held = runNow(flow);
    const waiting = flow.enqueue({ ...request, ttlMs: 100 }, key());
    clock.advance(99);
    held.release();
    const lease = leaseOf(await waiting);
    const { signal } = lease;
    clock.advance(1e6);
    expect([signal.aborted, lease.isReleased]).toEqual([false, false]);
    expect(flow.stats()).toMatchObject({ inFlight: 1, evicted: 0 });
  });
});

describe('many deadlines', () => {
  it('are kept exactly, with as many different TTLs as there are requests', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true) });
    const random = new Random(8);
    const log = evictions(flow, clock);
    const due: [number, number][] = [];
    for (let i = 0; i < 400; i++) {
      const ttlMs = 1 + random.int(2000);
      void flow.enqueue({ byteSize: i, ttlMs }, key(`f${i % 9}`));
      due.push([clock.now() + ttlMs, i]);
      if (random.chance(0.1)) clock.advance(random.int(30));
    }
    clock.advance(5000);
    // At one instant in the order of arrival.
    expect(log).toEqual(due.sort(([a, i], [b, j]) => a - b || i - j));
    expect(clock.pendingTimers).toBe(0);
  });

  it('survive that most requests leave before them', () => {
    const abort = new AbortController();
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true) });
    const random = new Random(9);
    const log = evictions(flow, clock);
    const due: [number, number][] = [];
    for (let i = 0; i < 600; i++) {
      const ttlMs = 1 + random.int(300);
      const leaves = random.chance(0.8);
      void flow.enqueue({ byteSize: i, ttlMs, ...(leaves ? { signal: abort.signal } : {}) }, key());
      if (!leaves) due.push([ttlMs, i]);
    }
    abort.abort();
    log.length = 0;
    clock.advance(400);
    expect(log).toEqual(due.sort(([a, i], [b, j]) => a - b || i - j));
  });

  it('need one timer, which is not set anew for every request', () => {
    const clock = new CountingClock();
    const { flow } = makeFlow({ saturationDetector: dial(1, true), clock, limits: { maxRequests: 10_000 } });
    for (let i = 0; i < 5000; i++) {
      clock.advance(1);
      void flow.enqueue(request, key(`f${i % 50}`));
    }
    expect(clock.pendingTimers).toBe(1);
    expect(clock.timersSet).toBeLessThan(5);
  });

  it('move the timer forward when an earlier one comes', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(1, true) });
    const log = evictions(flow, clock);
    void flow.enqueue({ byteSize: 1, ttlMs: 5000 }, key());
    void flow.enqueue({ byteSize: 2, ttlMs: 100 }, key());
    expect(clock.pendingTimers).toBe(1);
    clock.advance(10_000);
    expect(log).toEqual([
      [100, 2],
      [5000, 1],
    ]);
  });

  it('are not missed, nor met too soon, when timers end early', () => {
    const clock = new EarlyClock();
    const { flow } = makeFlow({ saturationDetector: dial(1, true), clock });
    const log = evictions(flow, clock);
    for (const [byteSize, ttlMs] of [50, 100.5, 3000, 60_000].entries()) void flow.enqueue({ byteSize, ttlMs }, key());
    clock.advance(70_000);
    expect(log.map(([, size]) => size)).toEqual([0, 1, 2, 3]);
    for (const [index, ttlMs] of [50, 100.5, 3000, 60_000].entries()) {
      expect(log[index]?.[0]).toBeGreaterThanOrEqual(ttlMs);
      expect(log[index]?.[0]).toBeLessThan(ttlMs + 1);
    }
  });
});

it('ends the wait of what became overdue while the event loop stood still, and dispatches nothing of it', async () => {
  const clock = new TurnClock();
  const { flow } = makeFlow({
    clock,
    saturationDetector: concurrencyDetector({ maxConcurrency: 10 }),
    defaultRequestTtl: 1000,
  });
  const running = Array.from({ length: 10 }, () => runNow(flow));
  const waiting = Array.from({ length: 20 }, () => flow.enqueue(request, key()));
  clock.endTurn();
  clock.advance(1);
  // A rush: the operations of this turn share readings of the clock.
  for (let i = 0; i < 3; i++) flow.tryEnqueue(request, key());
  clock.block(5000);
  for (const lease of running) lease.release();
  for (const outcome of waiting) expect(dropOf(await outcome).type).toBe('EvictedTTL');
});

describe('a pool without endpoints', () => {
  const serving = (pool: EndpointPool): EndpointPool => {
    pool.add('e');
    return pool;
  };

  async function typesOf(outcomes: Promise<Outcome>[]): Promise<OutcomeType[]> {
    return (await Promise.all(outcomes)).map(({ type }) => type);
  }

  it('evicts with a cause of its own, after a TTL of its own', async () => {
    const { flow, clock } = makeFlow({
      pool: new EndpointPool(),
      defaultRequestTtl: '60s',
      noEndpointRequestTtl: '5s',
    });
    const waiting = [flow.enqueue(request, key('a')), flow.enqueue({ ...request, ttlMs: 10 }, key('b'))];
    clock.advance(4999);
    expect(flow.stats().waiting).toBe(2);
    clock.advance(1);
    expect(await typesOf(waiting)).toEqual(['EvictedNoEndpoints', 'EvictedNoEndpoints']);
    expect(dropOf(await waiting[0])).toMatchObject({ reason: 'no-endpoints', queuedMs: 5000 });
  });

  it.each([
    ['the default TTL that was set', { defaultRequestTtl: 70 }, 70],
    ['5 s, because no server was ever ready', {}, 5000],
    ['the one of its own', { defaultRequestTtl: 70, noEndpointRequestTtl: 30 }, 30],
  ])('uses %s', (_, options, expectedMs) => {
    const { flow, clock } = makeFlow({ pool: new EndpointPool(), ...options });
    void flow.enqueue(request, key());
    clock.advance(expectedMs - 1);
    expect(flow.stats().waiting).toBe(1);
    clock.advance(1);
    expect(flow.stats().outcomes.EvictedNoEndpoints).toBe(1);
  });

  it('gives everything that waits a fresh budget when its first endpoint comes', async () => {
    const pool = new EndpointPool();
    const { flow, clock } = makeFlow({
      pool,
      saturationDetector: dial(1, true),
      defaultRequestTtl: 1000,
      noEndpointRequestTtl: 5000,
    });
    const regimes = record(flow, 'regime');
    const waiting = flow.enqueue(request, key());
    clock.advance(4000);
    pool.add('e');
    expect(regimes).toEqual([{ isPoolEmpty: false }]);
    clock.advance(999);
    expect(flow.stats().waiting).toBe(1);
    clock.advance(1);
    expect(dropOf(await waiting)).toMatchObject({ type: 'EvictedTTL', queuedMs: 5000 });
  });

  it.each([
    ['for all requests', { defaultRequestTtl: 3000 }, {}],
    ['for this one', {}, { ttlMs: 3000 }],
  ])('does not let a request wait longer than its TTL in all, where that is set %s', async (_, options, own) => {
    const pool = serving(new EndpointPool());
    const { flow, clock } = makeFlow({ pool, saturationDetector: dial(1, true), ...options });
    const first = flow.enqueue({ ...request, ...own }, key());
    clock.advance(2900);
    pool.remove('e');
    const second = flow.enqueue({ ...request, ...own }, key());
    clock.advance(100);
    expect(dropOf(await first)).toMatchObject({ type: 'EvictedNoEndpoints', queuedMs: 3000 });
    pool.add('e');
    clock.advance(2900);
    expect(dropOf(await second)).toMatchObject({ type: 'EvictedTTL', queuedMs: 3000 });
  });

  it('is waited for as long as a TTL once a server was ready', async () => {
    const pool = serving(new EndpointPool());
    const { flow, clock } = makeFlow({ pool });
    pool.remove('e');
    const outcome = flow.enqueue(request, key());
    clock.advance(60_000);
    expect(dropOf(await outcome)).toMatchObject({ type: 'EvictedNoEndpoints', queuedMs: 60_000 });
  });

  it('gives everything that waits a fresh budget when its last endpoint goes', async () => {
    const pool = serving(new EndpointPool());
    const { flow, clock } = makeFlow({
      pool,
      saturationDetector: dial(1, true),
      defaultRequestTtl: 1000,
      noEndpointRequestTtl: 5000,
    });
    const waiting = flow.enqueue(request, key());
    clock.advance(900);
    pool.add('other');
    pool.remove('e');
    expect(flow.stats().waiting).toBe(1);
    pool.remove('other');
    clock.advance(4099);
    expect(flow.stats().waiting).toBe(1);
    clock.advance(1);
    expect(dropOf(await waiting)).toMatchObject({ type: 'EvictedNoEndpoints', queuedMs: 5000 });
  });

  it('has no say over a request that comes after the change', () => {
    const pool = new EndpointPool();
    const { flow, clock } = makeFlow({ pool, saturationDetector: dial(1, true), defaultRequestTtl: 1000 });
    clock.advance(500);
    pool.add('e');
    clock.advance(500);
    void flow.enqueue(request, key());
    clock.advance(999);
    expect(flow.stats().waiting).toBe(1);
    clock.advance(1);
    expect(flow.stats().waiting).toBe(0);
  });

  it('keeps requests of different TTLs apart through its changes', () => {
    const pool = new EndpointPool();
    const { flow, clock } = makeFlow({
      pool,
      saturationDetector: dial(1, true),
      defaultRequestTtl: '60s',
      noEndpointRequestTtl: '30s',
    });
    const log = evictions(flow, clock);
    const ttls = [60_000, 2000, 60_000, 5000, 2000, 60_000];
    for (const [byteSize, ttlMs] of ttls.entries()) void flow.enqueue({ byteSize, ttlMs }, key());
    clock.advance(1000);
    pool.add('e');
    clock.advance(2000);
    expect(log).toEqual([
      [3000, 1],
      [3000, 4],
    ]);
    pool.remove('e');
    clock.advance(1000);
    pool.add('e');
    clock.advance(60_000);
    expect(log.slice(2)).toEqual([
      [9000, 3],
      [60_000, 0],
      [60_000, 2],
      [60_000, 5],
    ]);
    expect(flow.stats().waiting).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it('can keep requests for ever, and forgets the deadlines they had before', async () => {
    const pool = serving(new EndpointPool());
    const detector = dial(1, true);
    const { flow, clock } = makeFlow({ pool, saturationDetector: detector, noEndpointRequestTtl: 0 });
    const log = evictions(flow, clock);
    const abort = new AbortController();
    void flow.enqueue({ byteSize: 1, ttlMs: 100, signal: abort.signal }, key());
    for (const [index, ttlMs] of [200, 100, 300].entries()) void flow.enqueue({ byteSize: index + 2, ttlMs }, key());
    pool.remove('e');
    clock.advance(1e6);
    expect(log).toEqual([]);
    abort.abort();
    expect(flow.stats().waiting).toBe(3);
    pool.add('e');
    log.length = 0;
    clock.advance(300);
    expect(log).toEqual([
      [1e6 + 100, 3],
      [1e6 + 200, 2],
      [1e6 + 300, 4],
    ]);
  });

  it('lets nothing go, however empty its detector says it is', () => {
    const { flow, clock } = makeFlow({ pool: new EndpointPool(), saturationDetector: dial(0) });
    void flow.enqueue(request, key());
    clock.advance(1000);
    expect(flow.stats()).toMatchObject({ waiting: 1, dispatched: 0, isGateClosed: true });
  });
});

it('a new budget for empty pools counts for what waits already', () => {
  const { flow, clock } = makeFlow({ pool: new EndpointPool(), noEndpointRequestTtl: '60s' });
  void flow.enqueue(request, key());
  clock.advance(1000);
  flow.reconfigure({ noEndpointRequestTtl: '3s' });
  clock.advance(1999);
  expect(flow.stats().waiting).toBe(1);
  clock.advance(1);
  expect(flow.stats().outcomes.EvictedNoEndpoints).toBe(1);
});

it('a shorter default TTL counts for new requests only', () => {
  const { flow, clock } = makeFlow({ saturationDetector: dial(1, true) });
  void flow.enqueue(request, key('old'));
  flow.reconfigure({ defaultRequestTtl: '1s' });
  void flow.enqueue(request, key('new'));
  clock.advance(1000);
  expect(overviewOf(flow, { flows: 'all' }).bands[0]?.flows.map(({ fairnessId }) => fairnessId)).toEqual(['old']);
  clock.advance(59_000);
  expect(flow.stats().waiting).toBe(0);
});

it('the timer of a request that went does not fire for nothing', () => {
  const clock = new CountingClock();
  const { flow } = makeFlow({ clock, saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
  const held = runNow(flow);
  void flow.enqueue({ ...request, ttlMs: 100 }, key());
  held.release();
  expect(clock.pendingTimers).toBe(0);
});

describe('a rush in a turn that takes long', () => {
  it('ends no wait early, whatever the host does between two calls', () => {
    const clock = new TurnClock();
    const { flow } = makeFlow({ saturationDetector: dial(1, true), clock });
    const dueAtMs: number[] = [];
    const early: number[] = [];
    flow.on('dropped', ({ request: { byteSize } }) => {
      const due = dueAtMs[byteSize] ?? Number.NaN;
      if (clock.now() < due) early.push(clock.now() - due);
    });
    const random = new Random(7);
    for (let turn = 0; turn < 50; turn++) {
      for (let call = 0; call < 20; call++) {
        clock.advance(random.chance(0.1) ? random.int(30) : 0.001);
        dueAtMs.push(clock.now() + 100);
        void flow.enqueue({ byteSize: dueAtMs.length - 1, ttlMs: 100 }, key());
      }
      clock.endTurn();
    }
    clock.advance(150);
    expect([early, flow.stats()]).toMatchObject([[], { waiting: 0, evicted: 1000 }]);
  });
});
