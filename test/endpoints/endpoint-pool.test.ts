import { describe, expect, it } from 'vitest';
import { concurrencyDetector, EndpointPool, FlowController, type SaturationDetector } from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import type { MetricsReport } from '../../src/types/index.js';
import { key, leaseOf, makeFlow, request, runNow } from '../support/flow.js';
import { pathsOf } from '../support/paths-of.js';

const idle: MetricsReport = { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 };

function poolWith(...ids: string[]): EndpointPool {
  const pool = new EndpointPool();
  for (const id of ids) pool.add(id);
  return pool;
}

function ids(pool: EndpointPool): string[] {
  return pool.endpoints.map(({ id }) => id);
}

describe('membership', () => {
  it('keeps the order in which endpoints were added', () => {
    const pool = poolWith('b', 'a', 'c');
    pool.remove('a');
    pool.add('a');
    expect(ids(pool)).toEqual(['b', 'c', 'a']);
    expect(pool.get('c')?.id).toBe('c');
    expect(pool.get('x')).toBeUndefined();
  });

  it.each([[''], ['taken'], [undefined], [3]])('rejects to add %j', (id) => {
    const pool = poolWith('taken');
    expect(pathsOf(() => pool.add(id as string))).toEqual(['id']);
    expect(ids(pool)).toEqual(['taken']);
  });

  it('keeps the labels that an endpoint came with, in a copy', () => {
    const pool = new EndpointPool();
    const labels = { zone: 'a' };
    pool.add('e', { labels });
    labels.zone = 'b';
    expect(pool.get('e')?.labels).toEqual({ zone: 'a' });
  });

  it('tells whether there was anything to remove', () => {
    const pool = poolWith('a');
    expect([pool.remove('a'), pool.remove('a'), pool.remove('b')]).toEqual([true, false, false]);
  });

  it('cannot be changed through the list of endpoints', () => {
    const pool = poolWith('b', 'a', 'c');
    pool.remove('c');
    const list = pool.endpoints as unknown as { id: string }[];
    expect(() => list.pop()).toThrow(TypeError);
    expect(() => (poolWith('x').endpoints as unknown as unknown[]).pop()).toThrow(TypeError);
    expect(() => list.sort((a, b) => (a.id < b.id ? -1 : 1))).toThrow(TypeError);
    expect(ids(pool)).toEqual(['b', 'a']);
  });

  it('lets who holds a list see no change in it', () => {
    const pool = poolWith('a', 'b');
    const before = pool.endpoints;
    pool.remove('a');
    expect(before.map(({ id }) => id)).toEqual(['a', 'b']);
  });
});

describe('an endpoint that is removed while requests run on it', () => {
  it('keeps their seats, which no longer count for the pool', () => {
    const pool = poolWith('a', 'b');
    const { flow } = makeFlow({ pool, saturationDetector: concurrencyDetector({ maxConcurrency: 2 }) });
    const former = pool.get('a')!;
    const leases = Array.from({ length: 4 }, () => leaseOf(flow.tryEnqueue({ ...request, tokens: 5 }, key())));
    pool.remove('a');
    expect([former.inFlightRequests, former.inFlightTokens]).toEqual([2, 10]);
    expect([pool.inFlightRequests, pool.inFlightTokens]).toEqual([2, 10]);
    expect(flow.stats()).toMatchObject({ inFlight: 4, inFlightTokens: 20 });
    expect(leases.filter(({ endpoint }) => endpoint === former)).toHaveLength(2);
    for (const lease of leases) lease.release();
    expect([former.inFlightRequests, pool.inFlightRequests, pool.inFlightTokens, flow.stats().inFlight]).toEqual([
      0, 0, 0, 0,
    ]);
  });

  it('and added again under the same name starts from zero', () => {
    const pool = poolWith('a');
    const { flow } = makeFlow({ pool });
    const lease = runNow(flow);
    const former = pool.get('a')!;
    pool.report('a', idle);
    pool.remove('a');
    const successor = pool.add('a');
    expect(successor).not.toBe(former);
    expect(successor).toMatchObject({ inFlightRequests: 0, dispatchedRequests: 0, metrics: undefined });
    const next = runNow(flow);
    expect(next.endpoint).toBe(successor);
    lease.release();
    expect([former.inFlightRequests, successor.inFlightRequests, pool.inFlightRequests]).toEqual([0, 1, 1]);
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
    next.release();
    expect(pool.inFlightRequests).toBe(0);
  });

  it('and whose requests end lets others go, when the detector counts by itself', () => {
    const pool = poolWith('a', 'b');
    let running = 0;
    const { flow } = makeFlow({
      pool,
      saturationDetector: {
        type: 'counts-itself',
        saturation: () => running / 2,
        dispatched: () => running++,
        released: () => running--,
        subscribe: () => () => {},
      },
    });
    const leases = [runNow(flow), runNow(flow)];
    void flow.enqueue(request, key());
    pool.remove('a');
    expect(flow.stats().waiting).toBe(1);
    leases.find(({ endpoint }) => endpoint?.id === 'a')?.release();
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 2 });
  });

  it('shrinks the pool for the requests that wait', () => {
    const pool = poolWith('a', 'b');
    const { flow } = makeFlow({ pool });
    const [first, second] = [runNow(flow), runNow(flow)];
    void flow.enqueue(request, key());
    pool.remove('a');
    first.release();
    expect(flow.stats().waiting).toBe(1);
    second.release();
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 1 });
  });
});

describe('an endpoint that is added', () => {
  it('lets waiting requests go in the same turn', () => {
    const pool = poolWith('a');
    const { flow } = makeFlow({ pool });
    runNow(flow);
    for (let i = 0; i < 3; i++) void flow.enqueue(request, key());
    pool.add('b');
    pool.add('c');
    expect(flow.stats()).toMatchObject({ waiting: 1, inFlight: 3 });
    expect(pool.endpoints.map(({ inFlightRequests }) => inFlightRequests)).toEqual([1, 1, 1]);
  });
});

describe('report', () => {
  it('replaces the metrics, sampled now unless it says when', () => {
    const pool = poolWith('a');
    const { clock } = makeFlow({ pool });
    clock.advance(500);
    expect(pool.report('a', { waitingQueueSize: 3, runningRequests: 4, kvCacheUsage: 0.5 })).toBe(true);
    expect(pool.get('a')?.metrics).toMatchObject({
      waitingQueueSize: 3,
      runningRequests: 4,
      kvCacheUsage: 0.5,
      sampledAtMs: 500,
    });
    pool.report('a', { ...idle, sampledAtMs: 500 });
    expect(pool.get('a')?.metrics).toMatchObject({ waitingQueueSize: 0, sampledAtMs: 500 });
  });

  it('that is older than the last one is ignored', () => {
    const pool = poolWith('a');
    const { clock } = makeFlow({ pool });
    clock.advance(500);
    pool.report('a', { ...idle, waitingQueueSize: 9, sampledAtMs: 400 });
    expect(pool.report('a', { ...idle, sampledAtMs: 399 })).toBe(true);
    expect(pool.get('a')?.metrics).toMatchObject({ waitingQueueSize: 9, sampledAtMs: 400 });
  });

  it('for nobody is told so', () => {
    expect(poolWith('a').report('b', idle)).toBe(false);
  });

  it.each<[string, Record<string, unknown>, string[]]>([
    ['a negative figure', { waitingQueueSize: -1 }, ['waitingQueueSize']],
    ['NaN', { kvCacheUsage: Number.NaN }, ['kvCacheUsage']],
    ['infinity', { runningRequests: Number.POSITIVE_INFINITY }, ['runningRequests']],
    ['text', { waitingQueueSize: '3' }, ['waitingQueueSize']],
    ['a missing figure', { kvCacheUsage: undefined }, ['kvCacheUsage']],
    ['a wrong time', { sampledAtMs: -5 }, ['sampledAtMs']],
    ['several of them', { waitingQueueSize: null, kvCacheUsage: -0.1 }, ['waitingQueueSize', 'kvCacheUsage']],
  ])('refuses %s, and changes nothing', (_, figures, paths) => {
    const pool = poolWith('a');
    pool.report('a', { ...idle, waitingQueueSize: 7 });
    const before = pool.get('a')?.metrics;
    expect(pathsOf(() => pool.report('a', { ...idle, ...figures } as MetricsReport))).toEqual(paths);
    expect(pool.get('a')?.metrics).toBe(before);
  });
});

describe('what an endpoint counts', () => {
  it('is what was dispatched, what runs, and what no sample has seen', () => {
    const pool = poolWith('a');
    const { flow, clock } = makeFlow({ pool, saturationDetector: () => 0 });
    const endpoint = pool.get('a')!;
    const figures = (): number[] => [
      endpoint.dispatchedRequests,
      endpoint.inFlightRequests,
      endpoint.unsampledRequests,
    ];
    runNow(flow);
    expect(figures()).toEqual([1, 1, 0]);
    clock.advance(10);
    pool.report('a', idle);
    clock.advance(10);
    const [first, second, third] = [runNow(flow), runNow(flow), runNow(flow)];
    expect(figures()).toEqual([4, 4, 3]);
    first.release();
    expect(figures()).toEqual([4, 3, 2]);
    clock.advance(10);
    runNow(flow);
    pool.report('a', { ...idle, sampledAtMs: 25 });
    expect(figures()).toEqual([5, 4, 1]);
    pool.report('a', { ...idle, sampledAtMs: 30 });
    expect(figures()).toEqual([5, 4, 0]);
    second.release();
    third.release();
    expect(figures()).toEqual([5, 2, 0]);
  });
});

describe('two controllers on one pool', () => {
  function two(maxConcurrency = 1): {
    pool: EndpointPool;
    clock: ManualClock;
    first: FlowController;
    second: FlowController;
  } {
    const pool = poolWith('a');
    const clock = new ManualClock();
    const [first, second] = [0, 1].map(
      () => new FlowController({ pool, clock, saturationDetector: concurrencyDetector({ maxConcurrency }) }),
    ) as [FlowController, FlowController];
    return { pool, clock, first, second };
  }

  it('see each other’s requests, and wake each other', async () => {
    const { pool, first, second } = two();
    const lease = runNow(first);
    const waiting = second.enqueue(request, key());
    expect(second.stats()).toMatchObject({ waiting: 1, inFlight: 0 });
    lease.release();
    expect(second.stats()).toMatchObject({ waiting: 0, inFlight: 1 });
    expect([first.stats().inFlight, pool.inFlightRequests]).toEqual([0, 1]);
    leaseOf(await waiting).release();
    expect(pool.inFlightRequests).toBe(0);
  });

  it('never take the same seat twice', () => {
    const { pool, first, second } = two(3);
    const held = [runNow(first), runNow(second), runNow(first)];
    for (let i = 0; i < 10; i++) for (const flow of [first, second]) void flow.enqueue(request, key());
    for (const lease of held) {
      lease.release();
      expect(pool.inFlightRequests).toBe(3);
    }
    expect(first.stats().inFlight + second.stats().inFlight).toBe(3);
    expect(first.stats().waiting + second.stats().waiting).toBe(17);
  });

  it('take turns at a seat that is given back, three and more of them', () => {
    for (const count of [3, 4, 7]) {
      const pool = poolWith('a');
      const saturationDetector = (): SaturationDetector => concurrencyDetector({ maxConcurrency: 1 });
      const flows = Array.from(
        { length: count },
        () => new FlowController({ pool, clock: new ManualClock(), saturationDetector: saturationDetector() }),
      );
      const order: number[] = [];
      let held = runNow(flows[0] as FlowController);
      for (const [index, flow] of flows.entries()) {
        for (let i = 0; i < 50; i++) void flow.enqueue(request, key());
        flow.on('dispatched', ({ lease }) => {
          order.push(index);
          held = lease;
        });
      }
      for (let i = 0; i < 20 * count; i++) held.release();
      for (const [index] of flows.entries())
        expect(order.filter((each) => each === index).length).toBeGreaterThanOrEqual(10);
    }
  });

  it('are both told when the pool loses its last endpoint', () => {
    const { pool, clock, first, second } = two();
    runNow(first);
    for (const flow of [first, second]) void flow.enqueue(request, key());
    pool.remove('a');
    clock.advance(60_000);
    for (const flow of [first, second])
      expect(flow.stats().outcomes).toMatchObject({ EvictedNoEndpoints: 1, EvictedTTL: 0 });
  });

  it('leave each other alone when one closes', async () => {
    const { pool, first, second } = two();
    const lease = runNow(first);
    const waiting = second.enqueue(request, key());
    await first.close();
    lease.release();
    leaseOf(await waiting);
    expect(pool.inFlightRequests).toBe(1);
  });
});

it('a pool without a controller goes by the platform’s clock', () => {
  const pool = poolWith('a');
  const before = performance.now();
  pool.report('a', idle);
  expect(pool.get('a')?.metrics?.sampledAtMs).toBeGreaterThanOrEqual(before);
});
