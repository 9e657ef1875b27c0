/** Endpoints marked as overloaded, and bands with a detector of their own. */
import { describe, expect, it } from 'vitest';
import {
  byStage,
  concurrencyDetector,
  type EndpointFilter,
  EndpointPool,
  maxOf,
  type SaturationDetector,
  utilizationDetector,
  withHysteresis,
} from '../../../src/index.js';
import { dial, dropOf, key, leaseOf, makeFlow, request, turns } from '../../support/flow.js';

function pair() {
  const pool = new EndpointPool();
  pool.add('a');
  pool.add('b');
  return pool;
}

describe('an endpoint that is marked as overloaded', () => {
  it('gets nothing until the time is up', () => {
    const pool = pair();
    const { flow, clock } = makeFlow({ pool, saturationDetector: concurrencyDetector({ maxConcurrency: 10 }) });
    pool.markOverloaded('a', 1000);
    const ids = () => leaseOf(flow.tryEnqueue(request, key())).endpoint?.id;
    expect([ids(), ids(), ids()]).toEqual(['b', 'b', 'b']);
    clock.advance(1000);
    expect([ids(), ids(), ids()]).toEqual(['a', 'a', 'a']);
  });

  it('holds requests back when all are marked, and lets them go when the first mark ends, without anybody calling', async () => {
    const pool = pair();
    const { flow, clock } = makeFlow({ pool, saturationDetector: concurrencyDetector({ maxConcurrency: 10 }) });
    pool.markOverloaded('a', 1000);
    pool.markOverloaded('b', 300);
    let endpoint: string | undefined;
    void flow.enqueue(request, key()).then((outcome) => {
      endpoint = leaseOf(outcome).endpoint?.id;
    });
    await turns();
    expect(endpoint).toBeUndefined();
    clock.advance(299);
    await turns();
    expect(endpoint).toBeUndefined();
    clock.advance(1);
    await turns();
    expect(endpoint).toBe('b');
  });

  it('comes back at once when the mark is cleared', async () => {
    const pool = new EndpointPool();
    pool.add('a');
    const { flow } = makeFlow({ pool, saturationDetector: concurrencyDetector({ maxConcurrency: 10 }) });
    pool.markOverloaded('a', 1000);
    const outcome = flow.enqueue(request, key());
    pool.clearOverloaded('a');
    expect(leaseOf(await outcome).endpoint?.id).toBe('a');
  });

  it("is an overload to a controller in mode 'admission'", async () => {
    const pool = new EndpointPool();
    pool.add('a');
    const { flow } = makeFlow({ pool, mode: 'admission' });
    pool.markOverloaded('a', 1000);
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({ type: 'RejectedCapacity', reason: 'overloaded' });
  });
});

describe('endpoints without room', () => {
  /** `a` is full, `b` idle: on the whole the pool is not. Requests may go to `a` only. */
  function aIsFull(saturationDetector: SaturationDetector, headroom?: 'preferred' | 'required') {
    const pool = pair();
    const onlyA: EndpointFilter = { type: 'only-a', classOf: () => '', keep: ([first]) => (first === undefined ? [] : [first]) };
    const { flow } = makeFlow({ pool, saturationDetector, endpointFilters: [onlyA], headroom });
    pool.report('a', { waitingQueueSize: 5, runningRequests: 9, kvCacheUsage: 0.5 });
    pool.report('b', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
    return { flow, pool };
  }
  const detectors: [string, () => SaturationDetector][] = [
    ['utilization-detector', () => utilizationDetector({ queueDepthThreshold: 5 })],
    ['max-saturation-detector', () => maxOf(utilizationDetector({ queueDepthThreshold: 5 }), concurrencyDetector())],
    ['stage-aware-saturation-detector', () => byStage(utilizationDetector({ queueDepthThreshold: 5 }))],
    ['hysteresis-saturation-detector', () => withHysteresis(utilizationDetector({ queueDepthThreshold: 5 }))],
  ];

  it.each(detectors)('get nothing where headroom is required, by %s', (_, make) => {
    const { flow, pool } = aIsFull(make());
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
    pool.report('a', { waitingQueueSize: 0, runningRequests: 9, kvCacheUsage: 0.5 });
    expect(leaseOf(flow.tryEnqueue(request, key())).endpoint?.id).toBe('a');
  });

  it.each(detectors)('take what has nowhere else to go where headroom is preferred, by %s', (_, make) => {
    expect(leaseOf(aIsFull(make(), 'preferred').flow.tryEnqueue(request, key())).endpoint?.id).toBe('a');
  });
});

describe('a picker that fails', () => {
  it('costs its choice, and not the headroom that is required', () => {
    const roomy: SaturationDetector = {
      type: 'roomy',
      saturation: () => 0,
      filter: (endpoints) => endpoints.filter(({ id }) => id === 'a'),
    };
    const pick = () => {
      throw new Error('broken');
    };
    const { flow } = makeFlow({ pool: pair(), headroom: 'required', endpointPicker: { type: 'broken', pick }, saturationDetector: roomy });
    const ids = [1, 2, 3].map(() => leaseOf(flow.tryEnqueue(request, key())).endpoint?.id);
    expect(ids).toEqual(['a', 'a', 'a']);
  });
});

describe('a band with a detector of its own', () => {
  it('is judged by it, the others by the shared one', async () => {
    const shared = dial(0);
    const own = dial(1);
    const { flow } = makeFlow({ saturationDetector: shared, bands: [{ priority: 0 }, { priority: -1, saturationDetector: own }] });
    expect(flow.tryEnqueue(request, key('a', 0))?.type).toBe('Dispatched');
    expect(flow.tryEnqueue(request, key('a', -1))).toBeUndefined();
    own.value = 0;
    shared.value = 1;
    expect(flow.tryEnqueue(request, key('a', 0))).toBeUndefined();
    expect(flow.tryEnqueue(request, key('a', -1))?.type).toBe('Dispatched');
  });

  it('waits behind a band above that waits', async () => {
    const shared = dial(1);
    const { flow, clock } = makeFlow({
      saturationDetector: shared,
      bands: [{ priority: 0 }, { priority: -1, saturationDetector: () => 0 }],
    });
    const order: string[] = [];
    void flow.enqueue(request, key('high', 0)).then(() => order.push('high'));
    void flow.enqueue(request, key('low', -1)).then(() => order.push('low'));
    clock.advance(100);
    await turns();
    expect(order).toEqual([]);
    shared.value = 0;
    clock.advance(100);
    await turns();
    expect(order).toEqual(['high', 'low']);
  });

  it.each(['fifo', 'aging'] as const)("waits behind nobody whose gate is closed with bandOrder '%s'", async (bandOrder) => {
    const [shared, own] = [dial(1, true), dial(1, true)];
    const { flow } = makeFlow({ saturationDetector: shared, bandOrder, bands: [{ priority: 5, saturationDetector: own }] });
    const order: string[] = [];
    void flow.enqueue(request, key('high', 5)).then(() => order.push('high'));
    void flow.enqueue(request, key('low', 0)).then(() => order.push('low'));
    shared.turnTo(0);
    await turns();
    expect(order).toEqual(['low']);
    own.turnTo(0);
    await turns();
    expect(order).toEqual(['low', 'high']);
  });

  it('hears what every band dispatches, and is unsubscribed when it is replaced', () => {
    const own = { ...dial(0, true), dispatches: 0, dispatched: () => own.dispatches++ };
    const announcing = dial(0, true);
    const { flow } = makeFlow({
      saturationDetector: () => 0,
      bands: [
        { priority: 0, saturationDetector: own },
        { priority: -1, saturationDetector: announcing },
      ],
    });
    flow.tryEnqueue(request, key('a', 5));
    flow.tryEnqueue(request, key('a', -1));
    expect(own.dispatches).toBe(2);
    expect(announcing.subscribers).toBe(1);
    flow.reconfigure({ bands: [{ priority: 0, saturationDetector: own }] });
    expect(announcing.subscribers).toBe(0);
  });
});
