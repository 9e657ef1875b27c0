import { describe, expect, it } from 'vitest';
import { exceededLimit, isUnlimited } from '../../../src/core/engine/capacity-limits.js';
import type { LimitOptions } from '../../../src/core/options.js';
import { EndpointPool, type FlowControllerOptions, overviewOf, roundRobin } from '../../../src/index.js';
import { dial, dropOf, key, makeFlow, request, runNow } from '../../support/flow.js';

const scopes = ['global', 'band', 'flow'] as const;
type Scope = (typeof scopes)[number];

function limited(scope: Scope, limits: LimitOptions): Partial<FlowControllerOptions> {
  if (scope === 'global') return { limits };
  return {
    bands: [{ priority: 0, ...(scope === 'band' ? { limits } : { flowLimits: limits }), fairness: roundRobin() }],
  };
}

/** Nothing is dispatched: what fits waits. */
function waitingRoom(options: Partial<FlowControllerOptions>): ReturnType<typeof makeFlow>['flow'] {
  return makeFlow({ saturationDetector: dial(1, true), ...options }).flow;
}

describe.each(scopes)('a limit of the %s', (scope) => {
  it('of requests takes as many as it says, and names itself to the next', async () => {
    const flow = waitingRoom(limited(scope, { maxRequests: 3 }));
    for (let i = 0; i < 3; i++) void flow.enqueue(request, key());
    expect(flow.stats().waiting).toBe(3);
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({
      type: 'RejectedCapacity',
      reason: `${scope}-max-requests`,
      limit: { scope, resource: 'requests', max: 3, used: 3 },
      queuedMs: 0,
    });
    expect(flow.stats()).toMatchObject({ waiting: 3, rejected: 1 });
  });

  it('of bytes may be reached exactly, and names itself to the next byte', async () => {
    const flow = waitingRoom(limited(scope, { maxBytes: 100 }));
    for (const byteSize of [60, 40]) void flow.enqueue({ byteSize }, key());
    expect(flow.stats()).toMatchObject({ waiting: 2, waitingBytes: 100 });
    expect(dropOf(await flow.enqueue({ byteSize: 1 }, key()))).toMatchObject({
      type: 'RejectedCapacity',
      reason: `${scope}-max-bytes`,
      limit: { scope, resource: 'bytes', max: 100, used: 100 },
    });
  });

  it('of bytes does not mind a request of size 0 when it is reached', () => {
    const flow = waitingRoom(limited(scope, { maxBytes: 100 }));
    void flow.enqueue({ byteSize: 100 }, key());
    void flow.enqueue({ byteSize: 0 }, key());
    expect(flow.stats()).toMatchObject({ waiting: 2, rejected: 0 });
  });

  it('of bytes rejects one request that is larger than the whole of it', async () => {
    const flow = waitingRoom(limited(scope, { maxBytes: 100 }));
    expect(dropOf(await flow.enqueue({ byteSize: 101 }, key()))).toMatchObject({ limit: { used: 0, max: 100 } });
  });

  it('has room again as soon as a request has left, whichever way', async () => {
    const detector = dial(1, true);
    const { flow, clock } = makeFlow({
      saturationDetector: detector,
      ...limited(scope, { maxRequests: 1, maxBytes: 10 }),
    });
    const abort = new AbortController();
    const waits = (own: object = {}): void => {
      const before = flow.stats().rejected;
      void flow.enqueue({ ...request, ...own }, key());
      expect(flow.stats()).toMatchObject({ waiting: 1, waitingBytes: 10, rejected: before });
    };
    waits({ ttlMs: 5 });
    clock.advance(5);
    waits({ signal: abort.signal });
    abort.abort();
    waits();
    detector.turnTo(0);
    detector.value = 1;
    expect(flow.stats().dispatched).toBe(1);
    waits();
    await flow.close();
  });

  it('counts what waits, not what runs', () => {
    const { flow } = makeFlow(limited(scope, { maxRequests: 1, maxBytes: 10 }));
    runNow(flow, key());
    void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 1, rejected: 0 });
  });

  it('may be unlimited', () => {
    const flow = waitingRoom({
      limits: { maxRequests: Infinity, maxBytes: Infinity },
      ...limited(scope, { maxRequests: Infinity, maxBytes: Infinity }),
    });
    for (let i = 0; i < 4000; i++) void flow.enqueue({ byteSize: 200_000 }, key());
    expect(flow.stats()).toMatchObject({ waiting: 4000, waitingBytes: 8e8 });
  });

  it('is a matter of the empty pool while there are no endpoints', async () => {
    const pool = new EndpointPool();
    const flow = waitingRoom({ pool, ...limited(scope, { maxRequests: 1 }) });
    void flow.enqueue(request, key());
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({
      type: 'RejectedNoEndpoints',
      reason: `${scope}-max-requests`,
      limit: { used: 1, max: 1 },
    });
    pool.add('e');
    expect(dropOf(await flow.enqueue(request, key())).type).toBe('RejectedCapacity');
    pool.remove('e');
    expect(dropOf(await flow.enqueue(request, key())).type).toBe('RejectedNoEndpoints');
  });
});

describe('which limit is named', () => {
  it.each([
    ['bytes before requests', { limits: { maxRequests: 0, maxBytes: 0 } }, 'global-max-bytes'],
    [
      'the whole before the band',
      { limits: { maxRequests: 0 }, bands: [{ priority: 0, limits: { maxBytes: 0 } }] },
      'global-max-requests',
    ],
    [
      'the band before the flow',
      { bands: [{ priority: 0, limits: { maxRequests: 0 }, flowLimits: { maxBytes: 0 } }] },
      'band-max-requests',
    ],
  ] as const)('%s', async (_, options, reason) => {
    expect(dropOf(await waitingRoom(options).enqueue(request, key())).reason).toBe(reason);
  });
});

describe('limits of one', () => {
  it('band leave other bands alone', () => {
    const flow = waitingRoom({ bands: [{ priority: 0, limits: { maxRequests: 1 } }, { priority: 1 }] });
    for (const priority of [0, 0, 1, 1]) void flow.enqueue(request, key('a', priority));
    expect(overviewOf(flow, { flows: 'all' }).bands.map(({ priority, waiting }) => [priority, waiting])).toEqual([
      [1, 2],
      [0, 1],
    ]);
  });

  it('flow leave other flows alone, those of the same fairness ID in other bands included', async () => {
    const flow = waitingRoom({ bands: [0, 1].map((priority) => ({ priority, flowLimits: { maxRequests: 1 } })) });
    for (const [name, priority] of [
      ['a', 0],
      ['b', 0],
      ['a', 1],
    ] as const) {
      void flow.enqueue(request, key(name, priority));
    }
    expect(flow.stats().waiting).toBe(3);
    expect(dropOf(await flow.enqueue(request, key('b', 0))).limit).toMatchObject({ scope: 'flow' });
  });
});

describe('in the shortest configuration', () => {
  const fill = (flow: ReturnType<typeof waitingRoom>, byteSize: number): void => {
    for (let i = 0; i < 6000; i++) void flow.enqueue({ byteSize }, key('noisy'));
  };

  it('a tenant that floods leaves half of its band to others', async () => {
    const flow = waitingRoom({});
    fill(flow, 1);
    expect(flow.stats().waiting).toBe(2500);
    expect(dropOf(await flow.enqueue(request, key('noisy')))).toMatchObject({
      reason: 'flow-max-requests',
      limit: { max: 2500 },
    });
    void flow.enqueue(request, key('polite'));
    expect(flow.stats().waiting).toBe(2501);
  });

  it('so does one with large requests', () => {
    const flow = waitingRoom({});
    fill(flow, 1e6);
    expect(flow.stats().waitingBytes).toBe(5e8);
    void flow.enqueue(request, key('polite'));
    expect(flow.stats().waiting).toBe(501);
  });

  it('and one that was told how much may wait may fill it with one flow', () => {
    const flow = waitingRoom({ limits: { maxRequests: 5500 } });
    fill(flow, 1);
    expect(flow.stats().waiting).toBe(5500);
  });
});

it('understands quantities', () => {
  const { flow } = makeFlow({
    limits: { maxRequests: '2k', maxBytes: '10Gi' },
    bands: [{ priority: 0, limits: { maxRequests: '1k', maxBytes: '0.5Ki' }, flowLimits: { maxRequests: '1500m' } }],
  });
  const { limits, bands } = overviewOf(flow, { flows: 'all' });
  expect(limits).toEqual({ maxRequests: 2000, maxBytes: 10 * 2 ** 30 });
  expect(bands[0]).toMatchObject({ limits: { maxRequests: 1000, maxBytes: 512 }, flowLimits: { maxRequests: 2 } });
});

it('a limit that shrinks keeps new requests out, and leaves those that wait in peace', async () => {
  const flow = waitingRoom({ limits: { maxRequests: 5 } });
  for (let i = 0; i < 4; i++) void flow.enqueue(request, key());
  flow.reconfigure({ limits: { maxRequests: 2 } });
  expect(flow.stats().waiting).toBe(4);
  expect(dropOf(await flow.enqueue(request, key())).limit).toEqual({
    scope: 'global',
    resource: 'requests',
    max: 2,
    used: 4,
  });
  flow.reconfigure({ limits: { maxRequests: 6 } });
  void flow.enqueue(request, key());
  expect(flow.stats().waiting).toBe(5);
});

describe('a limit by itself', () => {
  const used = { waiting: 2, waitingBytes: 20 };

  it.each([
    [{ maxRequests: 3, maxBytes: 30 }, 10, undefined],
    [{ maxRequests: 3, maxBytes: 30 }, 11, { scope: 'band', resource: 'bytes', max: 30, used: 20 }],
    [{ maxRequests: 2, maxBytes: 30 }, 10, { scope: 'band', resource: 'requests', max: 2, used: 2 }],
    [{ maxRequests: 2, maxBytes: 29 }, 10, { scope: 'band', resource: 'bytes', max: 29, used: 20 }],
  ])('of %j, and %d bytes more: %j', (limits, byteSize, hit) => {
    expect(exceededLimit('band', used, limits, byteSize)).toEqual(hit);
  });

  it.each([
    [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, true],
    [5, Number.POSITIVE_INFINITY, false],
    [Number.POSITIVE_INFINITY, 5, false],
    [5, 5, false],
  ])('of %d requests and %d bytes is none at all: %s', (maxRequests, maxBytes, isNone) => {
    expect(isUnlimited({ maxRequests, maxBytes })).toBe(isNone);
  });
});
