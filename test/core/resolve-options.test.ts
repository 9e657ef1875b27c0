import { describe, expect, it } from 'vitest';
import { realClock } from '../../src/base/clock.js';
import { FlowConfigError } from '../../src/base/faults/flow-config-error.js';
import { FlowController } from '../../src/core/flow-controller.js';
import type { FlowControllerOptions } from '../../src/core/options.js';
import { resolveOptions } from '../../src/core/resolve-options.js';
import { EndpointPool } from '../../src/endpoints/endpoint-pool.js';
import { SeatPool } from '../../src/endpoints/seat-pool.js';
import { staticUsageLimit } from '../../src/gate/ceilings/static-usage-limit.js';
import { concurrencyDetector } from '../../src/gate/detectors/concurrency-detector.js';
import { utilizationDetector } from '../../src/gate/detectors/utilization-detector.js';
import { ManualClock } from '../../src/testing/index.js';
import { globalStrict } from '../../src/tiers/2-fairness/global-strict.js';
import { edf } from '../../src/tiers/3-ordering/edf.js';

const saturationDetector = concurrencyDetector({ maxConcurrency: 15 });

function resolve(options: Partial<FlowControllerOptions> = {}): ReturnType<typeof resolveOptions> {
  return resolveOptions({ saturationDetector, ...options });
}

/** The complete message for options that cannot be right, as a caller without types may write them. */
function messageFor(options: object): string {
  try {
    resolveOptions({ saturationDetector, ...options } as FlowControllerOptions);
  } catch (error) {
    if (error instanceof FlowConfigError) return error.message;
    throw error;
  }
  return 'no error';
}

describe('defaults', () => {
  it('fills in everything but the detector', () => {
    const band = {
      limits: { maxRequests: 5000, maxBytes: 1e9 },
      flowLimits: { maxRequests: 2500, maxBytes: 5e8 },
      requestTtlMs: 60_000,
      fairness: { type: 'round-robin-fairness-policy' },
      ordering: { type: 'fcfs-ordering-policy' },
    };
    expect(resolve()).toMatchObject({
      saturationDetector,
      gate: { closeAt: 1, openAt: 1, failValue: 1, recheckIntervalMs: 10 },
      usageLimitPolicy: { type: 'static-usage-limit-policy' },
      limits: { maxRequests: 10_000, maxBytes: 1_073_741_824 },
      bands: [{ priority: 0, ...band }],
      defaultBand: band,
      defaultNegativeBand: band,
      maxBands: 64,
      maxFlows: 100_000,
      flowIdleTimeoutMs: 300_000,
      bandIdleTimeoutMs: 600_000,
      noEndpointRequestTtlMs: 60_000,
      endpointPicker: { type: 'least-loaded-picker' },
      clock: realClock,
    });
  });

  it('takes maxConcurrency for the detector that it is short for', () => {
    const flow = new FlowController({ maxConcurrency: 2 });
    const ask = () => flow.tryEnqueue({ byteSize: 1 }, { fairnessId: 'a' })?.type;
    expect([ask(), ask(), ask()]).toEqual(['Dispatched', 'Dispatched', undefined]);
    flow.reconfigure({ defaultRequestTtl: '5s' });
    flow.reconfigure({ maxConcurrency: 3 });
    expect([ask(), ask()]).toEqual(['Dispatched', undefined]);
    flow.reconfigure({ saturationDetector: () => 0 });
    expect(ask()).toBe('Dispatched');
    expect(() => flow.reconfigure({ saturationDetector: () => 0, maxConcurrency: 3 })).toThrow(FlowConfigError);
  });

  it('takes what is given, with its unit resolved', () => {
    const pool = new EndpointPool();
    const clock = new ManualClock();
    const usageLimitPolicy = staticUsageLimit({ threshold: 0.9 });
    const endpointPicker = { type: 'first', pick: () => undefined };
    const resolved = resolve({
      gate: { closeAt: 0.9, openAt: 0.7, failValue: 0, recheckIntervalMs: 50 },
      usageLimitPolicy,
      limits: { maxRequests: '1k', maxBytes: '10Gi' },
      bands: [
        {
          priority: 3,
          limits: { maxRequests: 5 },
          flowLimits: { maxRequests: '2' },
          requestTtl: '5s',
          ordering: edf(),
        },
      ],
      maxBands: 2,
      maxFlows: 7,
      flowIdleTimeout: '1m',
      bandIdleTimeout: '2m',
      noEndpointRequestTtl: '1m30s',
      pool,
      endpointPicker,
      clock,
    });
    expect(resolved).toMatchObject({
      gate: { closeAt: 0.9, openAt: 0.7, failValue: 0, recheckIntervalMs: 50 },
      limits: { maxRequests: 1000, maxBytes: 10 * 2 ** 30 },
      maxBands: 2,
      maxFlows: 7,
      flowIdleTimeoutMs: 60_000,
      bandIdleTimeoutMs: 120_000,
      noEndpointRequestTtlMs: 90_000,
    });
    expect(resolved.bands[0]).toMatchObject({
      priority: 3,
      limits: { maxRequests: 5, maxBytes: 10 * 2 ** 30 },
      flowLimits: { maxRequests: 2, maxBytes: Infinity },
      requestTtlMs: 5000,
      ordering: { type: 'edf-ordering-policy' },
    });
    expect(resolved.pool).toBe(pool);
    expect(resolved.clock).toBe(clock);
    expect(resolved.usageLimitPolicy).toBe(usageLimitPolicy);
    expect(resolved.endpointPicker).toBe(endpointPicker);
  });

  it.each<[string, object, object]>([
    ['the controller', { limits: { maxRequests: 20 } }, { maxRequests: Infinity, maxBytes: 5e8 }],
    [
      'a template of bands',
      { defaultBand: { limits: { maxBytes: '1Gi' } } },
      { maxRequests: 2500, maxBytes: Infinity },
    ],
    ['flows themselves', { defaultBand: { flowLimits: { maxRequests: 7 } } }, { maxRequests: 7, maxBytes: 5e8 }],
    ['nothing, where a full queue makes room', { overflow: 'fair' }, { maxRequests: Infinity, maxBytes: Infinity }],
    ['nothing, where sheddable requests leave', { overflow: 'displace' }, { maxRequests: 2500, maxBytes: 5e8 }],
  ])('limits flows by default as far as the host limits %s', (_, options, flowLimits) => {
    expect(resolve(options).bands[0]?.flowLimits).toEqual(flowLimits);
  });

  it('keeps one default policy object, so that a reconfiguration can see that nothing changed', () => {
    expect(resolve().defaultBand.fairness).toBe(resolve().defaultBand.fairness);
    expect(resolve().usageLimitPolicy).toBe(resolve().usageLimitPolicy);
  });
});

describe('limits', () => {
  it('lets bands follow a larger global limit, but only one that was set', () => {
    expect(resolve({ limits: { maxRequests: 20_000 } }).defaultBand.limits).toEqual({
      maxRequests: 20_000,
      maxBytes: 1e9,
    });
    expect(resolve({ limits: { maxRequests: 10, maxBytes: Infinity } }).bands[0]?.limits).toEqual({
      maxRequests: 5000,
      maxBytes: Infinity,
    });
  });

  it('reads Infinity as unlimited and 0 as nothing at all', () => {
    expect(resolve({ limits: { maxRequests: Infinity, maxBytes: 0 } }).limits).toEqual({
      maxRequests: Infinity,
      maxBytes: 0,
    });
    expect(resolve({ defaultBand: { limits: { maxRequests: 0 } } }).defaultBand.limits.maxRequests).toBe(0);
  });
});

describe('bands', () => {
  it('sorts them from high to low and adds priority 0 from the template', () => {
    const { bands } = resolve({
      bands: [{ priority: -10 }, { priority: 100 }],
      defaultBand: { limits: { maxRequests: 7 } },
    });
    expect(bands.map(({ priority, limits }) => [priority, limits.maxRequests])).toEqual([
      [100, 5000],
      [0, 7],
      [-10, 5000],
    ]);
  });

  it('does not take configured bands from the template', () => {
    const { bands } = resolve({
      bands: [{ priority: 0 }],
      defaultBand: { requestTtl: '1s', fairness: globalStrict() },
    });
    expect(bands[0]?.requestTtlMs).toBe(60_000);
  });

  it('uses the default template for negative priorities unless they have their own, which then stands for itself', () => {
    const defaultBand = { limits: { maxRequests: 7, maxBytes: 8 } };
    expect(resolve({ defaultBand }).defaultNegativeBand.limits).toEqual({ maxRequests: 7, maxBytes: 8 });
    const own = resolve({ defaultBand, defaultNegativeBand: { limits: { maxRequests: 1 } } });
    expect(own.defaultNegativeBand.limits).toEqual({ maxRequests: 1, maxBytes: 1e9 });
  });

  it('makes room for every configured band when maxBands is not set', () => {
    const bands = Array.from({ length: 100 }, (_, index) => ({ priority: index + 1 }));
    expect(resolve({ bands }).maxBands).toBe(101);
  });

  it('counts the share of a template for every band that may be made from it', () => {
    const share = (minShare: number, more: object = {}): ReturnType<typeof resolve> =>
      resolve({ defaultBand: { minShare }, ...more });
    expect(() => share(0.3)).toThrow(
      'defaultBand.minShare: expected shares of up to 64 bands (maxBands) that add up to less than 1; got 19.2 when all of them exist',
    );
    expect(() => resolve({ defaultNegativeBand: { minShare: 0.5 }, maxBands: 3 })).toThrow(
      'defaultNegativeBand.minShare: expected',
    );
    expect(() => share(0.3, { maxBands: 4, bands: [{ priority: 1, minShare: 0.2 }] })).toThrow(
      'got 1.1 when all of them exist',
    );
    expect(share(0.3, { maxBands: 3 }).defaultBand.minShare).toBe(0.3);
    expect(share(0.015).bands[0]?.minShare).toBe(0.015);
    expect(resolve({ defaultBand: { minShare: 0.9 }, bands: [{ priority: 0 }], maxBands: 1 }).maxBands).toBe(1);
  });

  it('reads -0 as 0', () => {
    expect(resolve({ bands: [{ priority: -0 }] }).bands.map(({ priority }) => priority)).toEqual([0]);
  });
});

describe('times', () => {
  it.each([0, '0s', Infinity])('lets requests wait for ever with a TTL of %s', (ttl) => {
    expect(resolve({ defaultRequestTtl: ttl })).toMatchObject({
      defaultBand: { requestTtlMs: Infinity },
      noEndpointRequestTtlMs: Infinity,
    });
    expect(resolve({ bands: [{ priority: 0, requestTtl: ttl }] })).toMatchObject({
      bands: [{ requestTtlMs: Infinity }],
      noEndpointRequestTtlMs: 60_000,
    });
  });

  it('lets the no-endpoint TTL follow the default TTL only when that was given', () => {
    expect(resolve({ defaultRequestTtl: '10s' }).noEndpointRequestTtlMs).toBe(10_000);
    expect(resolve({ defaultRequestTtl: '10s', noEndpointRequestTtl: '5m' }).noEndpointRequestTtlMs).toBe(300_000);
  });

  it('keeps a band at least as long as its flows', () => {
    expect(resolve({ flowIdleTimeout: '20m' }).bandIdleTimeoutMs).toBe(1_200_000);
    expect(resolve({ flowIdleTimeout: '10m', bandIdleTimeout: '10m' }).bandIdleTimeoutMs).toBe(600_000);
  });
});

describe('plugins', () => {
  it('makes a detector of a function', () => {
    const { saturationDetector: detector } = resolve({ saturationDetector: (pool) => pool.endpoints.length / 2 });
    expect(detector.type).toBe('function');
    expect(detector.saturation(SeatPool.implicit(), 0)).toBe(0.5);
  });

  it('passes plugin objects on as they are', () => {
    const ordering = edf();
    expect(resolve({ bands: [{ priority: 0, ordering }] }).bands[0]?.ordering).toBe(ordering);
    expect(resolve().saturationDetector).toBe(saturationDetector);
  });

  it('accepts plugins whose methods are inherited', () => {
    class Newest {
      readonly type = 'newest';
      compare(a: { sequence: number }, b: { sequence: number }): number {
        return b.sequence - a.sequence;
      }
    }
    expect(resolve({ defaultBand: { ordering: new Newest() } }).defaultBand.ordering.type).toBe('newest');
  });
});

describe('what cannot be right', () => {
  it('no options, or no detector', () => {
    expect(() => resolveOptions(undefined as unknown as FlowControllerOptions)).toThrow(
      'FlowController options: expected an object; got nothing',
    );
    expect(messageFor({ saturationDetector: undefined })).toBe(
      'FlowController options: saturationDetector: expected a saturation detector, or maxConcurrency, such as 15, which is short for one; or constraints; got nothing',
    );
  });

  it.each([
    [
      { maxConcurrency: 4 },
      'maxConcurrency: expected no saturationDetector beside it, which it is short for; got both',
    ],
    [
      { maxConcurrency: 0, saturationDetector: undefined },
      'maxConcurrency: expected an integer from 1 up; got 0 (number)',
    ],
    [{ concurrency: 4, saturationDetector: undefined }, '(did you mean "maxConcurrency"?); got an unknown key'],
  ])('a limit of what runs: %o', (options, expected) => {
    expect(messageFor(options)).toContain(expected);
  });

  it.each<[string, object, string]>([
    [
      'an unknown option',
      { gate: { closAt: 1 } },
      'gate.closAt: expected one of the keys closeAt, openAt, failValue, recheckIntervalMs (did you mean "closeAt"?); got an unknown key',
    ],
    [
      'an option in the wrong place',
      { bands: [{ priority: 0, maxRequests: 5 }] },
      'bands[0].maxRequests: expected one of the keys priority, limits, flowLimits, maxInFlightPerFlow, requestTtl, fairness, ordering, saturationDetector, minShare, endpoints (did you mean "limits.maxRequests"?); got an unknown key',
    ],
    [
      'the word for what brings its code',
      { mode: 'shadow' },
      'mode: expected one of "queue", "admission", or shadow(); got "shadow" (string)',
    ],
    [
      'the options of what brings its code, by themselves',
      { eviction: { graceMs: 5 } },
      'eviction: expected inFlightEviction(), with its options, such as inFlightEviction({ graceMs: 500 }); got an object with keys graceMs',
    ],
    ['a wrong type', { bands: 'all' }, 'bands: expected an array; got "all" (string)'],
    [
      'a bad quantity',
      { limits: { maxRequests: '-5' } },
      'limits.maxRequests: expected an integer from 0 up, Infinity, or a quantity like "1k"; got "-5" (string)',
    ],
    [
      'a fraction',
      { bands: [{ priority: 0, limits: { maxBytes: 1.5 } }] },
      'bands[0].limits.maxBytes: expected an integer from 0 up, Infinity, or a quantity like "10Gi"; got 1.5 (number)',
    ],
    [
      'a quantity beyond the safe integers',
      { limits: { maxBytes: '8Pi' } },
      'limits.maxBytes: expected at most 9007199254740991 (2^53 - 1), or Infinity for unlimited; got "8Pi" (string)',
    ],
    [
      'a duplicate band',
      { bands: [{ priority: 1 }, { priority: 0 }, { priority: 1 }] },
      'bands[2].priority: expected a priority that no other band has; got 1 (number), the priority of bands[0]',
    ],
    [
      'a priority that is no safe integer',
      { bands: [{ priority: 0.5 }] },
      'bands[0].priority: expected a safe integer; got 0.5 (number)',
    ],
    [
      'a negative TTL',
      { defaultRequestTtl: '-1s' },
      'defaultRequestTtl: expected ms from 0 up, Infinity, or a duration like "60s"; got "-1s" (string)',
    ],
    [
      'a duration without a unit',
      { noEndpointRequestTtl: '60' },
      'noEndpointRequestTtl: expected ms from 0 up, Infinity, or a duration like "60s"; got "60" (string)',
    ],
    [
      'an idle timeout of 0',
      { flowIdleTimeout: 0 },
      'flowIdleTimeout: expected ms above 0, or a duration like "5m"; got 0 (number)',
    ],
    [
      'bands that go before their flows',
      { flowIdleTimeout: '20m', bandIdleTimeout: '10m' },
      'bandIdleTimeout: expected at least flowIdleTimeout (1200000 ms); got "10m" (string)',
    ],
    [
      'too few bands',
      { bands: [{ priority: 1 }, { priority: 2 }], maxBands: 2 },
      'maxBands: expected at least 3, for the 3 configured bands, priority 0 included; got 2 (number)',
    ],
    [
      'too many bands to be allowed',
      { maxBands: 1025 },
      'maxBands: expected an integer from 1 to 1024; got 1025 (number)',
    ],
    [
      'too many bands to be configured',
      { bands: Array.from({ length: 1024 }, (_, index) => ({ priority: index + 1 })) },
      'bands: expected at most 1024 bands; got the 1025 configured bands, priority 0 included',
    ],
    [
      'a gate that opens above its closing',
      { gate: { openAt: 2 } },
      'gate.openAt: expected a number of at most closeAt (1); got 2 (number)',
    ],
    [
      'a picker without a pool',
      { endpointPicker: { type: 'p', pick: () => undefined } },
      'pool: expected an EndpointPool, for endpointPicker to pick from; got nothing',
    ],
    ['a pool that is none', { pool: [] }, 'pool: expected an EndpointPool; got an array of 0'],
    [
      'a clock that is none',
      { clock: { now: Date.now } },
      'clock: expected a clock with now, setTimeout and clearTimeout; got an object with keys now',
    ],
    [
      'the name of a plugin instead of the plugin',
      { defaultBand: { ordering: 'fcfs-ordering-policy' } },
      'defaultBand.ordering: expected an ordering policy, such as fcfs(); got "fcfs-ordering-policy" (string)',
    ],
    [
      'a factory instead of its plugin',
      { defaultBand: { fairness: globalStrict } },
      'defaultBand.fairness: expected a fairness policy, such as roundRobin(); got a function: call it if it makes one',
    ],
    [
      'a plugin without its method',
      { saturationDetector: { type: 'mine' } },
      'saturationDetector.saturation: expected a method: a saturation detector must have "saturation"; got nothing',
    ],
    [
      'a plugin without a type',
      { usageLimitPolicy: { computeLimits: () => undefined } },
      'usageLimitPolicy.type: expected the type name of a usage-limit policy; got nothing',
    ],
    [
      'a plugin with something else where a method may be',
      { saturationDetector: { type: 'mine', saturation: () => 0, filter: true } },
      'saturationDetector.filter: expected a method, or nothing: a saturation detector may have "filter"; got true (boolean)',
    ],
  ])('%s', (_, options, message) => {
    expect(messageFor(options)).toBe(`FlowController options: ${message}`);
  });

  it('lists everything in one error that a person can read', () => {
    const message = messageFor({
      limits: { maxRequests: 'many' },
      bands: [{ priority: 100, limits: { maxRequest: 5 } }, { priority: 100 }, null],
      defaultRequestTtl: -1,
      saturationDetector: 'concurrency-detector',
      maxBand: 3,
      gate: { closeAt: 'x', openAt: 5 },
    });
    expect(message).toBe(
      `FlowController options: 8 problems
  saturationDetector: expected a saturation detector, such as concurrencyDetector({ maxConcurrency: 15 }), or a function that returns the saturation; got "concurrency-detector" (string)
  gate.closeAt: expected a number above 0; got "x" (string)
  limits.maxRequests: expected an integer from 0 up, Infinity, or a quantity like "1k"; got "many" (string)
  bands[0].limits.maxRequest: expected one of the keys maxRequests, maxBytes (did you mean "maxRequests"?); got an unknown key
  bands[2]: expected an object; got null
  defaultRequestTtl: expected ms from 0 up, Infinity, or a duration like "60s"; got -1 (number)
  maxBand: expected one of the keys saturationDetector, constraints, seatListener, maxConcurrency, gate, mode, admission, eviction, overflow, onDispatch, estimate, bandOrder, bandPromotion, minShareUnit, flows, usageLimitPolicy, limits, bands, defaultBand, defaultNegativeBand, maxBands, maxFlows, flowIdleTimeout, bandIdleTimeout, defaultRequestTtl, noEndpointRequestTtl, pool, endpointPicker, endpointFilters, headroom, holBlocking, maxDispatchesPerTurn, maxLeaseMs, overdueLeases, traceLeases, clock (did you mean "maxBands"?); got an unknown key
  bands[1].priority: expected a priority that no other band has; got 100 (number), the priority of bands[0]`,
    );
  });

  it('opens its message with the name of the call', () => {
    expect(() => resolveOptions({ saturationDetector, maxFlows: 0 }, 'reconfigure')).toThrow(
      'reconfigure: maxFlows: expected an integer from 1 up; got 0 (number)',
    );
  });
});

describe('a detector that reads reports', () => {
  it('needs a pool to read them from', () => {
    expect(() => resolveOptions({ saturationDetector: utilizationDetector() })).toThrow(
      'FlowController options: pool: expected an EndpointPool, for utilization-detector to read; got nothing',
    );
    expect(() => resolveOptions({ saturationDetector: utilizationDetector(), pool: new EndpointPool() })).not.toThrow();
  });

  it.each(['defaultBand', 'defaultNegativeBand'])('needs it in %s as well', (template) => {
    expect(() =>
      resolveOptions({ saturationDetector, [template]: { saturationDetector: utilizationDetector() } }),
    ).toThrow('FlowController options: pool: expected an EndpointPool, for utilization-detector to read; got nothing');
  });
});
