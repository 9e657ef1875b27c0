import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LatencySample } from '../../../../src/gate/detectors/adaptive/adaptive-limit.js';
import {
  aimdLatency,
  EndpointPool,
  type EndpointView,
  FlowConfigError,
  gradient2,
  vegas,
} from '../../../../src/index.js';
import type { AdaptiveDetector } from '../../../../src/types/index.js';
import { fakeEndpoint, poolOf } from '../../../support/fake-pool.js';
import { fakeSeat } from '../../../support/fake-seat.js';
import { key, leaseOf, makeFlow, request } from '../../../support/flow.js';
import { inFlight, WindowFeed } from '../../../support/latency-windows.js';

const aimd = (options: object = {}): AdaptiveDetector => aimdLatency({ targetMs: 1000, ...options });

/** Observes one sample each `everyMs`, and answers with the limits that came of them. */
function limitsAfter(detector: AdaptiveDetector, samples: readonly LatencySample[], everyMs = 100): number[] {
  return samples.map((sample, i) => {
    detector.saturation(inFlight(detector.limit), i * everyMs);
    detector.observe(sample, i * everyMs);
    return detector.limit;
  });
}
const times = (count: number, sample: LatencySample): LatencySample[] => Array.from({ length: count }, () => sample);

describe.each<[string, () => AdaptiveDetector]>([
  ['aimdLatency', () => aimd({ maxLimit: 60 })],
  ['gradient2', () => gradient2({ maxLimit: 60 })],
  ['vegas', () => vegas({ maxLimit: 60 })],
])('%s', (_, make) => {
  it('reads requests in flight over its limit, and begins with 20', () => {
    const detector = make();
    expect(detector.limit).toBe(20);
    expect(detector.lastWindow).toBeUndefined();
    expect([0, 5, 20, 30].map((count) => detector.saturation(inFlight(count), 0))).toEqual([0, 0.25, 1, 1.5]);
  });

  it('keeps its limit an integer within its bounds, whatever it is told, and tells whoever listens when it rises', () => {
    const sample = fc.oneof(
      fc.record({ ttftMs: fc.double({ min: 0, max: 1e5, noNaN: true }) }),
      fc.record({ ttftMs: fc.constantFrom(0, 1, 1e-300, 1e300) }),
      fc.constant({ isDrop: true }),
      fc.constant({}),
    );
    const step = fc.tuple(sample, fc.nat(80), fc.nat(2000));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const detector = make();
        let rises = 0;
        let heard = 0;
        detector.subscribe?.(() => heard++);
        let nowMs = 0;
        for (const [observed, count, elapsedMs] of steps) {
          const before = detector.limit;
          nowMs += elapsedMs;
          detector.saturation(inFlight(count), nowMs);
          detector.observe(observed, nowMs);
          if (detector.limit > before) rises++;
          expect(Number.isInteger(detector.limit)).toBe(true);
          expect(detector.limit).toBeGreaterThanOrEqual(1);
          expect(detector.limit).toBeLessThanOrEqual(60);
        }
        expect(heard).toBe(rises);
      }),
      { numRuns: 60 },
    );
  });

  it('answers the same to the same history', () => {
    const history = (): number[] => {
      const detector = make();
      const feed = new WindowFeed(detector);
      return Array.from({ length: 40 }, (_unused, i) => feed.play({ ttftMs: 500 + ((i * 7919) % 1000) }));
    };
    expect(history()).toEqual(history());
  });
});

describe('a window', () => {
  it('ends when it has lasted a second and holds ten requests, and makes one decision', () => {
    expect(limitsAfter(aimd(), times(22, { ttftMs: 1 }))).toEqual([
      ...times(10, {}).map(() => 20),
      ...times(11, {}).map(() => 21),
      22,
    ]);
    expect(new Set(limitsAfter(aimd(), times(9, { ttftMs: 1 }), 10_000))).toEqual(new Set([20]));
    expect(new Set(limitsAfter(aimd(), times(900, { ttftMs: 1 }), 1))).toEqual(new Set([20]));
  });

  it('can be made longer, and larger', () => {
    expect(limitsAfter(aimd({ windowMs: 200, minSamples: 4 }), times(5, { ttftMs: 1 })).at(-1)).toBe(21);
    expect(limitsAfter(aimd({ windowMs: 5000 }), times(50, { ttftMs: 1 })).at(-1)).toBe(20);
    expect(limitsAfter(aimd({ minSamples: 60 }), times(50, { ttftMs: 1 })).at(-1)).toBe(20);
  });

  it('is told with what came of it', () => {
    const detector = aimd();
    limitsAfter(detector, [...times(8, { ttftMs: 500 }), { ttftMs: 3300 }, ...times(2, { isDrop: true })]);
    expect(detector.lastWindow).toEqual({
      startedAtMs: 0,
      endedAtMs: 1000,
      samples: 9,
      drops: 2,
      latency: (8 * 500 + 3300) / 9,
      peakInFlight: 20,
      limit: 18,
    });
  });

  it.each([
    ['mean', 550],
    ['p50', 500],
    ['p90', 900],
  ])('is summarized by its %s', (statistic, expected) => {
    const detector = aimd({ statistic, windowMs: 900 });
    limitsAfter(
      detector,
      [9, 1, 5, 3, 7, 2, 8, 4, 6, 10].map((n) => ({ ttftMs: n * 100 })),
    );
    expect(detector.lastWindow?.latency).toBe(expected);
  });

  it('ranks its latest 512 requests, however many there are', () => {
    const detector = aimd({ statistic: 'p50', windowMs: 2000 });
    limitsAfter(detector, [...times(1000, { ttftMs: 1 }), ...times(1001, { ttftMs: 9 })], 1);
    expect(detector.lastWindow).toMatchObject({ samples: 2001, latency: 9 });
  });
});

describe('observe', () => {
  it('learns nothing from a request that was not measured', () => {
    const detector = aimd({ minLimit: 1 });
    limitsAfter(detector, times(100, {}));
    limitsAfter(detector, times(100, { promptTokens: 50 }));
    expect(detector.lastWindow).toBeUndefined();
  });

  it('takes a drop for a drop, whatever its latency', () => {
    const detector = aimd();
    expect(limitsAfter(detector, times(11, { isDrop: true, ttftMs: 1 })).at(-1)).toBe(18);
    expect(detector.lastWindow).toMatchObject({ samples: 0, drops: 11, latency: undefined });
  });

  it('divides by the prompt where the signal says so, and skips requests without one', () => {
    const detector = aimd({ targetMs: 2, signal: 'ttft-per-prompt-token' });
    const withoutPrompt = [...times(5, { ttftMs: 9000 }), { ttftMs: 9000, promptTokens: 0 }];
    limitsAfter(detector, [...withoutPrompt, ...times(11, { ttftMs: 3000, promptTokens: 2000 })]);
    expect(detector.lastWindow).toMatchObject({ samples: 11, latency: 1.5 });
  });

  it('takes the time from the controller when it gets none', () => {
    const detector = aimd();
    for (let i = 0; i < 10; i++) {
      detector.saturation(inFlight(20), 5000 + i * 200);
      detector.observe({ ttftMs: 10 });
    }
    expect(detector.lastWindow).toMatchObject({ startedAtMs: 5000, endedAtMs: 6800 });
  });

  it.each<[string, LatencySample, number?]>([
    ['ttftMs', { ttftMs: -1 }],
    ['ttftMs', { ttftMs: Number.NaN }],
    ['promptTokens', { ttftMs: 1, promptTokens: Number.POSITIVE_INFINITY }],
    ['nowMs', { ttftMs: 1 }, Number.NaN],
  ])('refuses a wrong %s and has learned nothing', (path, sample, nowMs) => {
    const detector = aimd({ minSamples: 1, windowMs: 1e-9 });
    expect(() => detector.observe(sample, nowMs)).toThrow(`aimd-latency-detector.observe: ${path}: expected`);
    expect(detector.lastWindow).toBeUndefined();
  });
});

describe('an adaptive detector', () => {
  const endpoints = (...figures: [inFlightRequests: number, weight?: number][]): EndpointView[] =>
    figures.map(([inFlightRequests, weight = 1], i) => fakeEndpoint(`e${i}`, { inFlightRequests, weight }));

  it('keeps the endpoints below their share of the limit, by weight', () => {
    const kept = (...figures: Parameters<typeof endpoints>): (string | undefined)[] | undefined =>
      aimd({ initialLimit: 10 })
        .filter?.(endpoints(...figures), 0)
        .map(({ id }) => id);
    expect(kept([0], [3], [4])).toEqual(['e0', 'e1']);
    expect(kept([0], [0], [9])).toEqual(['e0', 'e1']);
    expect(kept([4], [4], [4])).toEqual([]);
    expect(kept([7, 4], [2, 1])).toEqual(['e0']);
    expect(kept([8, 4], [1, 1])).toEqual(['e1']);
  });

  it('keeps some endpoint as long as the pool has room', () => {
    const figure = fc.tuple(fc.nat(6), fc.integer({ min: 1, max: 5 }));
    fc.assert(
      fc.property(
        fc.array(figure, { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 1, max: 40 }),
        (figures, initialLimit) => {
          const detector = aimd({ initialLimit });
          const pool = poolOf(...endpoints(...figures));
          if (detector.saturation(pool, 0) < 1) expect(detector.filter?.(pool.endpoints, 0)).not.toEqual([]);
        },
      ),
    );
  });

  it('knows the share of an endpoint in the pool, also when asked about a part of it', () => {
    const detector = aimd({ initialLimit: 9 });
    const pool = poolOf(...endpoints([3], [2], [0]));
    detector.saturation(pool, 0);
    expect(detector.filter?.(pool.endpoints.slice(0, 2), 0)).toEqual([pool.endpoints[1]]);
  });

  it('does not raise a limit of which less than half is in use', () => {
    const feed = new WindowFeed(aimd());
    expect(feed.play({ ttftMs: 1, peak: 9 })).toBe(20);
    expect(feed.play({ ttftMs: 1, peak: 10 })).toBe(21);
  });

  it('lets waiting requests go when the limit rises, without a timer', () => {
    const detector = aimd({ initialLimit: 2, minSamples: 2 });
    const { flow, clock } = makeFlow({ saturationDetector: detector });
    for (let i = 0; i < 4; i++) void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 2 });
    detector.observe({ ttftMs: 10 }, 0);
    clock.advance(1000);
    expect(clock.pendingTimers).toBe(1); // for the TTL
    detector.observe({ ttftMs: 10 }, clock.now());
    expect(flow.stats()).toMatchObject({ inFlight: 3, waiting: 1 });
  });

  it('counts what is in flight in the whole pool', () => {
    const pool = new EndpointPool();
    for (const id of ['a', 'b']) pool.add(id);
    const detector = aimd({ initialLimit: 3 });
    const { flow } = makeFlow({ pool, saturationDetector: detector });
    const leases = [0, 1, 2].map(() => leaseOf(flow.tryEnqueue(request, key())));
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
    expect(pool.endpoints.map(({ inFlightRequests }) => inFlightRequests)).toEqual([2, 1]);
    expect(detector.saturation(pool, 0)).toBe(1);
    leases[0]?.release();
    expect(detector.saturation(pool, 0)).toBeCloseTo(2 / 3, 12);
  });

  it.each([
    { initialLimit: 0 },
    { minLimit: 1.5 },
    { minLimit: 30, maxLimit: 20 },
    { minLimit: 30, initialLimit: 20 },
    { maxLimit: 10, initialLimit: 20 },
    { windowMs: 0 },
    { minSamples: 0 },
    { signal: 'end-to-end' },
    { statistic: 'max' },
    { targetMs: 0 },
    { backoffRatio: 1 },
    { backoffRatio: 0.4 },
    { target: 5 },
  ])('refuses %o', (options) => {
    expect(() => aimd(options)).toThrow(FlowConfigError);
  });

  it.each([
    [{ maxLimit: 10 }, 10],
    [{ minLimit: 30 }, 30],
    [{ initialLimit: 5 }, 5],
  ])('begins with the bound nearest to 20: %o', (options, limit) => {
    expect(aimd(options).limit).toBe(limit);
  });
});

describe('what an adaptive detector hears', () => {
  const endpoint = fakeEndpoint('a');

  it('is every seat that is taken and given back, from which the peak of a window comes', () => {
    const detector = aimd({ minSamples: 1, windowMs: 1000 });
    detector.saturation(inFlight(3), 0);
    detector.observe({ ttftMs: 1 }, 0);
    for (let i = 0; i < 5; i++) detector.dispatched?.(endpoint, 100, fakeSeat());
    for (let i = 0; i < 6; i++) detector.released?.(endpoint, 200, fakeSeat());
    detector.observe({ ttftMs: 1 }, 1000);
    expect(detector.lastWindow).toMatchObject({ peakInFlight: 8, samples: 2 });
    // The next window begins with what is in flight then.
    detector.observe({ ttftMs: 1 }, 2000);
    detector.observe({ ttftMs: 1 }, 3000);
    expect(detector.lastWindow).toMatchObject({ peakInFlight: 2 });
    expect(Object.isFrozen(detector.lastWindow)).toBe(true);
  });

  it('never sets its clock back', () => {
    const detector = aimd({ minSamples: 2, windowMs: 1 });
    detector.saturation(inFlight(1), 900);
    detector.dispatched?.(endpoint, 400, fakeSeat());
    detector.observe({ ttftMs: 1 });
    detector.released?.(endpoint, 950, fakeSeat());
    detector.observe({ ttftMs: 1 });
    expect(detector.lastWindow).toMatchObject({ startedAtMs: 900, endedAtMs: 950 });
  });

  it('is full for an empty pool', () => {
    expect(aimd().saturation(poolOf(), 0)).toBe(1);
  });

  it('tells each of its listeners of a rise, as often as it subscribed, until it stops', () => {
    const detector = aimd();
    const feed = new WindowFeed(detector);
    let heard = 0;
    const listener = (): void => void heard++;
    const stops = [detector.subscribe?.(listener), detector.subscribe?.(listener)];
    feed.play({ ttftMs: 1 });
    expect(heard).toBe(2);
    feed.play({ ttftMs: 9000 });
    expect(heard).toBe(2);
    stops[0]?.();
    feed.play({ ttftMs: 1 });
    expect(heard).toBe(3);
  });

  it('tells all of them of a rise, though one of them stops another', () => {
    const detector = aimd();
    const heard: string[] = [];
    detector.subscribe?.(() => {
      heard.push('first');
      stopSecond?.();
    });
    const stopSecond = detector.subscribe?.(() => heard.push('second'));
    new WindowFeed(detector).play({ ttftMs: 1 });
    expect(heard).toEqual(['first', 'second']);
  });
});

describe('limits that are not in order', () => {
  const issuesOf = (options: object): unknown => {
    try {
      aimd(options);
    } catch (error) {
      return (error as FlowConfigError).issues.map(({ path, expected }) => `${path}: ${expected}`);
    }
    return [];
  };

  it('are told, the first of them alone', () => {
    expect(issuesOf({ minLimit: 30, maxLimit: 20, initialLimit: 5 })).toEqual([
      'minLimit: an integer of at most maxLimit (20)',
    ]);
    expect(issuesOf({ minLimit: 1001 })).toEqual(['minLimit: an integer of at most maxLimit (1000)']);
    expect(issuesOf({ minLimit: 30, initialLimit: 29 })).toEqual(['initialLimit: at least minLimit (30)']);
    expect(issuesOf({ maxLimit: 30, initialLimit: 31 })).toEqual(['initialLimit: at most maxLimit (30)']);
    expect(issuesOf({ initialLimit: 1001 })).toEqual(['initialLimit: at most maxLimit (1000)']);
  });

  it('may be the same', () => {
    for (const limits of [
      { minLimit: 5, maxLimit: 5 },
      { minLimit: 5, initialLimit: 5 },
      { maxLimit: 5, initialLimit: 5 },
      { minLimit: 1000 },
      {},
    ]) {
      expect(issuesOf(limits)).toEqual([]);
    }
  });
});

describe('a sample', () => {
  const learns = (sample: LatencySample, signal: 'ttft' | 'ttft-per-prompt-token'): boolean => {
    const detector = aimd({ signal, minSamples: 1, windowMs: 1e-9 });
    detector.observe({ ttftMs: 1, promptTokens: 1 }, 0);
    detector.observe(sample, 1);
    return detector.lastWindow !== undefined;
  };

  it.each<[LatencySample, boolean, boolean]>([
    [{ ttftMs: 0, promptTokens: 1 }, true, true],
    [{ ttftMs: 5 }, true, false],
    [{ ttftMs: 5, promptTokens: 0 }, true, false],
    [{ promptTokens: 5 }, false, false],
    [{ isDrop: true }, true, true],
    [{ isDrop: false }, false, false],
    [{}, false, false],
  ])('%j teaches something by latency: %s, by latency for each token: %s', (sample, byLatency, byToken) => {
    expect([learns(sample, 'ttft'), learns(sample, 'ttft-per-prompt-token')]).toEqual([byLatency, byToken]);
  });

  it('that is wrong is told with all of its figures', () => {
    const wrong = (): void =>
      aimd().observe({ ttftMs: Number.POSITIVE_INFINITY, promptTokens: -1 }, Number.NEGATIVE_INFINITY);
    expect(wrong).toThrow(FlowConfigError);
    expect(wrong).toThrow(
      /observe: 3 problems\n {2}ttftMs: expected a number from 0 up; got Infinity \(number\)\n {2}promptTokens: expected a number from 0 up; got -1 \(number\)\n {2}nowMs: expected an instant of the clock, ms; got -Infinity \(number\)/,
    );
  });
});
