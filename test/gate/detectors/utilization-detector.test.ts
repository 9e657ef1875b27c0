import { describe, expect, it } from 'vitest';
import type {
  UtilizationDetector,
  UtilizationDetectorOptions,
} from '../../../src/gate/detectors/utilization-detector.js';
import {
  EndpointPool,
  type EndpointView,
  FlowConfigError,
  type Lease,
  utilizationDetector,
} from '../../../src/index.js';
import { fakeEndpoint, poolOf } from '../../support/fake-pool.js';
import { key, makeFlow, request } from '../../support/flow.js';

/** Figures of a threshold of 5 are easier to read. */
const atFive = (options: UtilizationDetectorOptions = {}): UtilizationDetector =>
  utilizationDetector({ queueDepthThreshold: 5, ...options });

/** Sampled at 0 unless told otherwise. */
function server(waitingQueueSize: number, kvCacheUsage: number, sampledAtMs = 0, unsampledRequests = 0): EndpointView {
  const id = `w${waitingQueueSize}k${kvCacheUsage}`;
  return fakeEndpoint(id, {
    metrics: { waitingQueueSize, kvCacheUsage, runningRequests: 0, sampledAtMs },
    unsampledRequests,
  });
}

/** The same server with twice the weight. */
function heavy(endpoint: EndpointView): EndpointView {
  return { ...endpoint, weight: 2 };
}

describe('the roofline', () => {
  it('is 1 where one request waits in each server, unless told otherwise', () => {
    expect(utilizationDetector()).toMatchObject({ type: 'utilization-detector', needsPool: true });
    expect(utilizationDetector().saturation(poolOf(server(1, 0)), 0)).toBe(1);
  });

  it.each<[string, UtilizationDetectorOptions, EndpointView[], number]>([
    ['is 0 for an idle server', {}, [server(0, 0)], 0],
    ['is the queue over its threshold of 5', {}, [server(2, 0)], 0.4],
    ['is the cache over its threshold of 0.8', {}, [server(0, 0.4)], 0.5],
    ['is the fuller of the two', {}, [server(1, 0.6)], 0.75],
    ['is 1 exactly at a threshold', {}, [server(5, 0)], 1],
    ['may exceed 1', {}, [server(20, 0)], 4],
    ['is the mean over the servers', {}, [server(0, 0), server(5, 0), server(10, 0)], 1],
    [
      'goes by the thresholds that are set',
      { queueDepthThreshold: 10, kvCacheUtilThreshold: 0.5 },
      [server(4, 0.1)],
      0.4,
    ],
    ['counts a server without metrics as full', {}, [fakeEndpoint('new'), server(0, 0)], 0.5],
    ['is 1 for an empty pool', {}, [], 1],
    ['counts what was sent since the sample as waiting', {}, [server(1, 0, 0, 3)], 0.8],
    ['lets a server of twice the weight have twice the queue', {}, [heavy(server(5, 0))], 0.5],
    ['counts a server of twice the weight twice', {}, [heavy(server(0, 0.8)), server(0, 0.2)], 0.75],
    ['does not when lag compensation is off', { lagCompensation: false }, [server(1, 0, 0, 3)], 0.2],
  ])('%s', (_, options, endpoints, expected) => {
    expect(atFive(options).saturation(poolOf(...endpoints), 0)).toBeCloseTo(expected, 12);
  });

  it.each([
    [200, 0, 0],
    [200.5, 1, 1],
    [10_000, 1, 1],
  ])('reads metrics of %d ms ago as saturation %d, with %d stale', (age, expected, stale) => {
    const detector = atFive();
    expect(detector.saturation(poolOf(server(0, 0, 1000)), 1000 + age)).toBe(expected);
    expect(detector.staleEndpoints).toBe(stale);
  });

  it('counts stale servers as they are at the last reading', () => {
    const detector = utilizationDetector({ metricsStalenessThreshold: '1s' });
    const pool = poolOf(server(0, 0, 0), server(0, 0, 5000), fakeEndpoint('new'));
    expect(detector.saturation(pool, 5500)).toBeCloseTo(2 / 3);
    expect(detector.staleEndpoints).toBe(2);
    detector.saturation(poolOf(server(0, 0, 5500)), 5500);
    expect(detector.staleEndpoints).toBe(0);
  });
});

describe('the filter', () => {
  it.each<[string, UtilizationDetectorOptions, EndpointView[], string[]]>([
    ['strictly below both thresholds', {}, [server(4, 0.79), server(5, 0), server(0, 0.8)], ['w4k0.79']],
    [
      'strictly below the thresholds and their headroom',
      { headroom: 0.5 },
      [server(7, 0), server(8, 0), server(0, 1.3)],
      ['w7k0'],
    ],
    [
      'below the threshold of the cache and its headroom',
      { kvCacheUtilThreshold: 0.6, headroom: 0.5 },
      [server(0, 0.95), server(0, 0.85)],
      ['w0k0.85'],
    ],
    ['below the threshold of their weight', {}, [heavy(server(9, 0)), heavy(server(10, 0)), server(8, 0)], ['w9k0']],
    ['fresh', {}, [server(0, 0.1, -500), server(1, 0)], ['w1k0']],
    [
      'below the threshold with what was sent since the sample',
      {},
      [server(2, 0, 0, 3), server(2, 0.1, 0, 2)],
      ['w2k0.1'],
    ],
  ])('keeps servers that are %s', (_, options, endpoints, expected) => {
    const kept = atFive(options).filter?.(endpoints, 0);
    expect(kept?.map(({ id }) => id)).toEqual(expected);
  });

  it('keeps none when all are full', () => {
    expect(utilizationDetector().filter?.([server(9, 0), server(8, 0)], 0)).toEqual([]);
  });
});

it.each([
  [{ queueDepthThreshold: 0 }],
  [{ kvCacheUtilThreshold: 0 }],
  [{ kvCacheUtilThreshold: 1.1 }],
  [{ metricsStalenessThreshold: 0 }],
  [{ metricsStalenessThreshold: 'soon' }],
  [{ headroom: -1 }],
  [{ lagCompensation: 1 }],
])('refuses %o', (options) => {
  const make = (): unknown => utilizationDetector(options as UtilizationDetectorOptions);
  expect(make).toThrow(FlowConfigError);
  expect(make).toThrow(/^utilizationDetector: /);
});

describe('between two samples', () => {
  function gateway(
    servers: number,
    options: UtilizationDetectorOptions = {},
  ): ReturnType<typeof makeFlow> & { pool: EndpointPool; sample: (waiting: number) => void } {
    const pool = new EndpointPool();
    const made = makeFlow({ pool, saturationDetector: atFive(options) });
    const sample = (waitingQueueSize: number): void => {
      for (const { id } of pool.endpoints) pool.report(id, { waitingQueueSize, runningRequests: 0, kvCacheUsage: 0 });
    };
    for (let i = 0; i < servers; i++) pool.add(`e${i}`);
    return { ...made, pool, sample };
  }

  it.each([
    [1, 5, 0],
    [3, 5, 0],
    [3, 5, 2],
    [4, 2, 1],
  ])('%d idle servers with a threshold of %d and %d waiting get no herd', (servers, queueDepthThreshold, waiting) => {
    const { flow, clock, sample, pool } = gateway(servers, { queueDepthThreshold });
    sample(waiting);
    clock.advance(1);
    for (let i = 0; i < 200; i++) void flow.enqueue(request, key());
    const room = queueDepthThreshold - waiting;
    expect(pool.endpoints.map(({ inFlightRequests }) => inFlightRequests)).toEqual(Array(servers).fill(room));
    expect(flow.stats()).toMatchObject({ inFlight: room * servers, waiting: 200 - room * servers });
  });

  it('release a herd without lag compensation', () => {
    const { flow, clock, sample } = gateway(2, { lagCompensation: false });
    sample(0);
    clock.advance(1);
    for (let i = 0; i < 200; i++) void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ inFlight: 200, waiting: 0 });
  });

  it('a request that has ended makes room for the next', () => {
    const { flow, clock, sample } = gateway(1);
    sample(0);
    clock.advance(1);
    let last = (): void => {};
    flow.on('dispatched', ({ lease }) => {
      last = () => lease.release();
    });
    for (let i = 0; i < 10; i++) void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ inFlight: 5, waiting: 5 });
    last();
    expect(flow.stats()).toMatchObject({ inFlight: 5, waiting: 4 });
  });

  it('a request that the sample counted and that has ended makes room for one that was sent since, until another sample knows', () => {
    const { flow, clock, sample, pool } = gateway(1);
    const leases: Lease[] = [];
    flow.on('dispatched', ({ lease }) => leases.push(lease));
    sample(0);
    clock.advance(1);
    for (let i = 0; i < 20; i++) void flow.enqueue(request, key());
    clock.advance(50);
    // Two of the five wait there: three may follow.
    sample(2);
    expect([flow.stats().inFlight, pool.get('e0')?.endedSinceReport]).toEqual([8, 0]);
    leases[0]?.release();
    leases[1]?.release();
    expect([flow.stats().inFlight, pool.get('e0')?.endedSinceReport]).toEqual([8, 2]);
    clock.advance(50);
    sample(5);
    expect([flow.stats().inFlight, pool.get('e0')?.endedSinceReport]).toEqual([8, 0]);
    leases[2]?.release();
    expect([flow.stats().inFlight, pool.get('e0')?.endedSinceReport]).toEqual([7, 1]);
  });

  it('what waited at the sample counts, however many have ended since', () => {
    const idle = fakeEndpoint('idle', {
      metrics: { waitingQueueSize: 0, kvCacheUsage: 0, runningRequests: 9, sampledAtMs: 0 },
    });
    expect(atFive().saturation(poolOf({ ...idle, unsampledRequests: 1, endedSinceReport: 4 }), 0)).toBe(0);
    expect(atFive().saturation(poolOf({ ...server(5, 0), endedSinceReport: 4 }), 0)).toBe(1);
    expect(atFive({ lagCompensation: false }).saturation(poolOf({ ...server(5, 0), endedSinceReport: 4 }), 0)).toBe(1);
  });

  it('a sample that includes what was sent takes its place', () => {
    const { flow, clock, sample, pool } = gateway(1);
    sample(0);
    clock.advance(1);
    for (let i = 0; i < 20; i++) void flow.enqueue(request, key());
    expect(flow.stats().inFlight).toBe(5);
    clock.advance(50);
    sample(1);
    // Four of the five run by now, one waits there: four more may follow.
    expect(flow.stats().inFlight).toBe(9);
    expect(pool.get('e0')?.unsampledRequests).toBe(4);
  });

  it('a request that was under way when the sample was taken is not in it', () => {
    const { flow, clock, sample, pool } = gateway(1);
    sample(0);
    clock.advance(20);
    for (let i = 0; i < 20; i++) void flow.enqueue(request, key());
    clock.advance(5);
    pool.report('e0', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0, travelMs: 6 });
    expect([flow.stats().inFlight, pool.get('e0')?.unsampledRequests]).toEqual([5, 5]);
    pool.report('e0', { waitingQueueSize: 4, runningRequests: 1, kvCacheUsage: 0, travelMs: 4 });
    expect([flow.stats().inFlight, pool.get('e0')?.unsampledRequests]).toEqual([6, 1]);
  });

  it('a sample of before the dispatch changes nothing', () => {
    const { flow, clock, sample, pool } = gateway(1);
    sample(0);
    clock.advance(20);
    for (let i = 0; i < 20; i++) void flow.enqueue(request, key());
    pool.report('e0', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0, sampledAtMs: 10 });
    expect([flow.stats().inFlight, pool.get('e0')?.unsampledRequests]).toEqual([5, 5]);
  });
});

it('metrics that grow stale close the gate, and fresh ones open it', () => {
  const pool = new EndpointPool();
  pool.add('e');
  const { flow, clock } = makeFlow({ pool, saturationDetector: utilizationDetector() });
  pool.report('e', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
  clock.advance(201);
  void flow.enqueue(request, key());
  expect(flow.stats()).toMatchObject({ waiting: 1, saturation: 1 });
  pool.report('e', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
  expect(flow.stats()).toMatchObject({ waiting: 0 });
});

it('the gate is looked at again when an overloaded server falls silent beside an idle one', () => {
  const pool = new EndpointPool();
  for (const id of ['busy', 'idle']) pool.add(id);
  const { flow, clock } = makeFlow({
    pool,
    saturationDetector: utilizationDetector({ metricsStalenessThreshold: 200 }),
  });
  pool.report('busy', { waitingQueueSize: 50, runningRequests: 0, kvCacheUsage: 0 });
  clock.advance(100);
  pool.report('idle', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
  void flow.enqueue(request, key());
  expect(flow.stats().waiting).toBe(1);
  clock.advance(110);
  expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 1 });
  expect(pool.get('idle')?.inFlightRequests).toBe(1);
});
