import { describe, expect, it } from 'vitest';
import { readBy } from '../../../src/base/schema/element.js';
import {
  type ConcurrencyDetectorOptions,
  concurrencyDetectorPlugin,
} from '../../../src/gate/detectors/concurrency-detector.js';
import {
  concurrencyDetector,
  defaultRegistry,
  EndpointPool,
  explainWait,
  FlowConfigError,
  type FlowController,
  type FlowControllerOptions,
  type Lease,
  type SaturationDetector,
} from '../../../src/index.js';
import { fakeItem } from '../../support/fake-item.js';
import { fakeEndpoint, fakePool, poolOf } from '../../support/fake-pool.js';
import { key, leaseOf, makeFlow, request } from '../../support/flow.js';

describe('concurrencyDetector', () => {
  it.each<[string, ConcurrencyDetectorOptions, [number, number][], number]>([
    [
      'counts requests by default',
      { maxConcurrency: 10 },
      [
        [4, 999],
        [2, 0],
      ],
      0.3,
    ],
    ['is idle on an idle pool', { maxConcurrency: 10 }, [[0, 0]], 0],
    ['exceeds 1 when bound beyond the limit', { maxConcurrency: 2 }, [[5, 0]], 2.5],
    [
      'counts tokens',
      { concurrencyMode: 'tokens', maxTokenConcurrency: 1000 },
      [
        [90, 500],
        [0, 1000],
      ],
      0.75,
    ],
    [
      'takes the mean of the fuller dimensions',
      { concurrencyMode: 'hybrid', maxConcurrency: 10, maxTokenConcurrency: 100 },
      [
        [5, 10],
        [1, 90],
      ],
      0.7,
    ],
    ['has room for 100 requests by default', {}, [[50, 0]], 0.5],
    ['has room for a million tokens by default', { concurrencyMode: 'tokens' }, [[0, 250_000]], 0.25],
    ['is full on an empty pool', {}, [], 1],
  ])('%s', (_, options, endpoints, expected) => {
    expect(concurrencyDetector(options).saturation(fakePool(endpoints), 0)).toBeCloseTo(expected, 12);
  });

  it.each<[string, ConcurrencyDetectorOptions, [number, number][], string[]]>([
    [
      'those below the limit',
      { maxConcurrency: 3 },
      [
        [2, 0],
        [3, 0],
        [4, 0],
      ],
      ['e0'],
    ],
    [
      'those below the limit and its headroom',
      { maxConcurrency: 3, headroom: 0.5 },
      [
        [3, 0],
        [4, 0],
        [5, 0],
      ],
      ['e0'],
    ],
    [
      'those below the limit of tokens',
      { concurrencyMode: 'tokens', maxTokenConcurrency: 10 },
      [
        [99, 9],
        [0, 10],
      ],
      ['e0'],
    ],
    [
      'those below both limits',
      { concurrencyMode: 'hybrid', maxConcurrency: 3, maxTokenConcurrency: 10 },
      [
        [2, 9],
        [3, 0],
        [0, 10],
      ],
      ['e0'],
    ],
    [
      'none when all are full',
      { maxConcurrency: 1 },
      [
        [1, 0],
        [2, 0],
      ],
      [],
    ],
  ])('filters %s', (_, options, endpoints, expected) => {
    const kept = concurrencyDetector(options).filter?.(fakePool(endpoints).endpoints, 0);
    expect(kept?.map(({ id }) => id)).toEqual(expected);
  });

  it.each([
    [{ maxConcurrency: 0 }],
    [{ maxConcurrency: 1.5 }],
    [{ maxTokenConcurrency: -1 }],
    [{ headroom: -0.1 }],
    [{ concurrencyMode: 'bytes' }],
    [{ maxConcurency: 5 }],
    [{ countIncoming: 'yes' }],
    [{ countIncoming: true }],
  ])('refuses %o', (options) => {
    expect(() => concurrencyDetector(options as ConcurrencyDetectorOptions)).toThrow(FlowConfigError);
  });

  it('never lets two requests pass one free place', () => {
    const pool = new EndpointPool();
    for (const id of ['a', 'b', 'c']) pool.add(id);
    const { flow } = makeFlow({ pool, saturationDetector: concurrencyDetector({ maxConcurrency: 2 }) });
    for (let i = 0; i < 50; i++) void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ inFlight: 6, waiting: 44 });
    expect(pool.endpoints.map(({ inFlightRequests }) => inFlightRequests)).toEqual([2, 2, 2]);
  });

  it('sends nothing to an endpoint that is full while others are not', () => {
    const pool = new EndpointPool();
    for (const id of ['a', 'b']) pool.add(id);
    const seen: string[][] = [];
    const { flow } = makeFlow({
      pool,
      saturationDetector: concurrencyDetector({ maxConcurrency: 2 }),
      endpointPicker: {
        type: 'first',
        pick(endpoints) {
          seen.push(endpoints.map(({ id }) => id));
          return endpoints[0];
        },
      },
    });
    for (let i = 0; i < 4; i++) void flow.enqueue(request, key());
    expect(seen).toEqual([['a', 'b'], ['a', 'b'], ['b'], ['b']]);
    expect(pool.endpoints.map(({ inFlightRequests }) => inFlightRequests)).toEqual([2, 2]);
  });

  describe('that counts the request to come', () => {
    const limits: ConcurrencyDetectorOptions = {
      concurrencyMode: 'tokens',
      maxTokenConcurrency: 100,
      countIncoming: true,
    };

    /** A controller with one request of so many tokens at each endpoint. */
    function loaded(
      tokens: readonly number[],
      options: Partial<FlowControllerOptions> = {},
    ): { flow: FlowController; leases: Lease[] } {
      const pool = new EndpointPool();
      for (const index of tokens.keys()) pool.add(`gpu-${index}`);
      const { flow } = makeFlow({ pool, saturationDetector: () => 0 });
      const leases = tokens.map((each) => leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: each }, key('running'))));
      flow.reconfigure({ saturationDetector: concurrencyDetector(limits), ...options });
      return { flow, leases };
    }

    it('lets a request wait until its tokens fit at one endpoint', async () => {
      const { flow, leases } = loaded([60, 90]);
      const outcome = flow.enqueue({ byteSize: 1, tokens: 50 }, key());
      expect(flow.stats().waiting).toBe(1);
      leases[0]?.release();
      expect(leaseOf(await outcome).endpoint?.id).toBe('gpu-0');
    });

    it('takes a request that lands on the limit', () => {
      const { flow } = loaded([60, 90]);
      expect(leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 40 }, key())).endpoint?.id).toBe('gpu-0');
    });

    it('lets a request that is larger than the limit run alone', async () => {
      const { flow, leases } = loaded([60]);
      const outcome = flow.enqueue({ byteSize: 1, tokens: 150 }, key());
      expect(flow.stats().waiting).toBe(1);
      leases[0]?.release();
      expect((await outcome).type).toBe('Dispatched');
    });

    it('lets nothing of the band pass a request that does not fit', async () => {
      const { flow, leases } = loaded([60]);
      const order: string[] = [];
      const large = flow.enqueue({ byteSize: 1, tokens: 50 }, key('a')).then(() => order.push('large'));
      const small = flow.enqueue({ byteSize: 1, tokens: 10 }, key('b')).then(() => order.push('small'));
      expect(flow.stats().waiting).toBe(2);
      leases[0]?.release();
      await Promise.all([large, small]);
      expect(order).toEqual(['large', 'small']);
    });

    it('lets other flows pass it where holBlocking says so', () => {
      const { flow } = loaded([60], { holBlocking: 'flow' });
      void flow.enqueue({ byteSize: 1, tokens: 50 }, key('a'));
      expect(flow.tryEnqueue({ byteSize: 1, tokens: 10 }, key('b'))?.type).toBe('Dispatched');
    });

    it('says what such a request waits for', () => {
      const { flow } = loaded([60]);
      const large = { byteSize: 1, tokens: 50 };
      void flow.enqueue(large, key());
      expect(JSON.stringify(explainWait(flow, large))).toContain('room for its 50 tokens');
    });

    it('looks at both figures in mode hybrid', () => {
      const { flow } = loaded([10, 10]);
      flow.reconfigure({
        saturationDetector: concurrencyDetector({ ...limits, concurrencyMode: 'hybrid', maxConcurrency: 1 }),
      });
      expect(flow.tryEnqueue({ byteSize: 1, tokens: 10 }, key())).toBeUndefined();
    });
  });
});

describe('the weight of an endpoint', () => {
  const [light, heavy, tiny] = [
    fakeEndpoint('light', { inFlightRequests: 4, inFlightTokens: 40 }),
    fakeEndpoint('heavy', { weight: 3, inFlightRequests: 11, inFlightTokens: 110 }),
    fakeEndpoint('tiny', { weight: 0.01 }),
  ] as const;
  const make = (options: ConcurrencyDetectorOptions = {}): SaturationDetector =>
    concurrencyDetector({ maxConcurrency: 4, maxTokenConcurrency: 40, ...options });
  const kept = (detector: SaturationDetector): unknown =>
    detector.filter?.([light, heavy, tiny], 0).map(({ id }) => id);

  it('multiplies its seats, of which there is one at least, and none in part', () => {
    const detector = make({ headroom: 0.3 });
    expect([light, heavy, tiny].map((endpoint) => detector.seatsOf?.(endpoint, 0))).toEqual([5, 15, 1]);
    expect(make({ concurrencyMode: 'hybrid' }).seatsOf?.(heavy, 0)).toBe(12);
    expect(make({ concurrencyMode: 'tokens' }).seatsOf).toBeUndefined();
  });

  it('multiplies its part of the capacity, in requests and in tokens', () => {
    const pool = poolOf(light, heavy, tiny);
    // Headroom belongs to single endpoints: the pool is full without it.
    expect(make({ headroom: 1 }).saturation(pool, 0)).toBe(15 / (4 + 12 + 1));
    expect(make({ concurrencyMode: 'tokens', headroom: 1 }).saturation(pool, 0)).toBe(150 / (40 + 120 + 1));
  });

  it('counts in the mean over the endpoints', () => {
    const hybrid = make({ concurrencyMode: 'hybrid' });
    expect(hybrid.saturation(poolOf(light, heavy), 0)).toBeCloseTo((1 * 1 + 3 * (11 / 12)) / 4, 12);
  });

  it('says where there is room for one more', () => {
    expect(kept(make())).toEqual(['heavy', 'tiny']);
    expect(kept(make({ headroom: 0.25 }))).toEqual(['light', 'heavy', 'tiny']);
    expect(kept(make({ concurrencyMode: 'tokens' }))).toEqual(['heavy', 'tiny']);
    expect(kept(make({ concurrencyMode: 'tokens', headroom: 0.25 }))).toEqual(['light', 'heavy', 'tiny']);
    expect(kept(make({ concurrencyMode: 'hybrid', maxTokenConcurrency: 36 }))).toEqual(['tiny']);
    expect(kept(make({ concurrencyMode: 'hybrid', maxConcurrency: 3, maxTokenConcurrency: 1000 }))).toEqual(['tiny']);
  });

  it('is in the capacity when endpoints come, go or change', () => {
    const detector = make();
    expect(detector.saturation(poolOf(light), 0)).toBe(1);
    expect(detector.saturation(poolOf(heavy), 0)).toBe(11 / 12);
  });
});

describe('what a concurrency detector says of single requests', () => {
  const busy = fakeEndpoint('busy', { weight: 2, inFlightRequests: 1, inFlightTokens: 70 });

  it('is nothing unless it counts the request to come', () => {
    for (const detector of [concurrencyDetector(), concurrencyDetector({ concurrencyMode: 'tokens' })]) {
      expect([detector.withRoomFor, detector.waitOf]).toEqual([undefined, undefined]);
    }
  });

  it('is where its tokens fit below the limit by weight, with headroom, and how long nobody knows', () => {
    const detector = concurrencyDetector({
      concurrencyMode: 'tokens',
      maxTokenConcurrency: 40,
      headroom: 0.5,
      countIncoming: true,
    });
    const fits = (tokens: number): boolean => detector.withRoomFor?.([busy], fakeItem({ tokens }), 0).length === 1;
    expect([0, 50, 51].map(fits)).toEqual([true, true, false]);
    expect(detector.waitOf?.([busy], fakeItem({ tokens: 51 }), 7)).toEqual({
      atMs: Number.POSITIVE_INFINITY,
      notBeforeMs: 7,
      missing: 'a server with room for its 51 tokens',
    });
  });

  it('is no where the endpoint has no room for any, though no tokens are in flight', () => {
    const full = fakeEndpoint('full', { inFlightRequests: 2 });
    const detector = concurrencyDetector({ concurrencyMode: 'hybrid', maxConcurrency: 2, countIncoming: true });
    expect(detector.withRoomFor?.([full], fakeItem({ tokens: 1 }), 0)).toEqual([]);
  });
});

describe('a concurrency detector in a file', () => {
  const create = (parameters: unknown): SaturationDetector =>
    defaultRegistry().create('concurrency-detector', parameters as object) as SaturationDetector;

  it('may name the producer of its counters, as files of llm-d do', () => {
    const detector = create({ maxConcurrency: 4, inFlightLoadProducerName: 'producer' });
    expect([detector.type, detector.saturation(fakePool([[2, 0]]), 0)]).toEqual(['concurrency-detector', 0.5]);
    expect(() => create({ maxConcurrency: 0, inFlightLoadProducerName: 'producer' })).toThrow('maxConcurrency');
  });

  it.each([[null], ['4'], [{ maxConcurency: 4 }], [{ maxConcurency: 4, inFlightLoadProducerName: 'producer' }]])(
    'is not made of %j',
    (parameters) => {
      let reports = 0;
      readBy(concurrencyDetectorPlugin.parameters, parameters, () => void reports++);
      expect(reports).toBe(1);
    },
  );

  it('says that counting the request to come needs tokens', () => {
    expect(() => create({ countIncoming: true })).toThrow(
      'concurrencyMode: expected "tokens" or "hybrid", because countIncoming counts tokens; got "requests"',
    );
  });
});
