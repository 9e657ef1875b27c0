/** Servers that become slow: what they begin takes longer, nobody is told, and afterwards all is as before. */
import { describe, expect, it } from 'vitest';
import { concurrencyDetector, FlowConfigError } from '../../src/index.js';
import {
  loadScenario,
  type SimServer,
  type SimulationOptions,
  type Slowdown,
  simulate,
} from '../../src/simulator/index.js';

/** One request every second to a server of one slot, half a second each. */
function oneSlot(slowdowns: readonly Slowdown[], more: Partial<SimulationOptions> = {}): SimulationOptions {
  return {
    duration: 10_000,
    servers: [{ name: 'gpu', model: 'slots', slots: 1, serviceTime: 500 }],
    traffic: [{ tenant: 'a', arrivals: { type: 'fixed', rate: 1, offset: 0.5 } }],
    slowdowns,
    keepRequests: true,
    flow: () => ({ saturationDetector: concurrencyDetector({ maxConcurrency: 1 }), defaultRequestTtl: 0 }),
    ...more,
  };
}

/** How long each request ran, ms. */
function timesOf(options: SimulationOptions): number[] {
  const { requests = [] } = simulate(options);
  return requests.map(({ endedAtMs = Number.NaN, dispatchedAtMs = Number.NaN }) =>
    Math.round(endedAtMs - dispatchedAtMs),
  );
}

describe('a server that becomes slow', () => {
  it('takes so many times as long for what it begins meanwhile, and as long as before afterwards', () => {
    const slow = timesOf(oneSlot([{ server: 'gpu', at: 2000, for: 3000, factor: 1.5 }]));
    expect(slow).toEqual([500, 500, 750, 750, 750, 500, 500, 500, 500, 500]);
  });

  it('stays slow where nothing says until when', () => {
    expect(timesOf(oneSlot([{ server: 'gpu', at: 8000, factor: 1.5 }]))).toEqual([...Array(8).fill(500), 750, 750]);
  });

  it('is slowed by all that overlap, and faster when the first of them is over', () => {
    const factors = [
      { server: 'gpu', at: 1000, for: 4000, factor: 1.2 },
      { server: 'gpu', at: 3000, for: 4000, factor: 1.5 },
    ];
    expect(timesOf(oneSlot(factors))).toEqual([500, 600, 600, 900, 900, 750, 750, 500, 500, 500]);
  });

  it.each(['continuous-batching', 'vtc-serving'] as const)('decodes more slowly: %s', (model) => {
    const options = (slowdowns: readonly Slowdown[]): SimulationOptions =>
      oneSlot(slowdowns, {
        servers: [{ name: 'gpu', model }],
        traffic: [
          { tenant: 'a', arrivals: { type: 'fixed', rate: 0.1, offset: 0.5 }, promptTokens: 100, outputTokens: 20 },
        ],
      });
    const [own = 0] = timesOf(options([]));
    const [slow = 0] = timesOf(options([{ server: 'gpu', at: 0, factor: 3 }]));
    expect(slow / own).toBeCloseTo(3, 1);
  });

  it('changes nothing elsewhere: the gateway is not told', () => {
    const two = (slowdowns: readonly Slowdown[]): SimulationOptions =>
      oneSlot(slowdowns, {
        drain: '0s',
        servers: [{ name: 'gpu', model: 'slots', count: 2, slots: 1, serviceTime: 500 }],
      });
    const { counts, servers } = simulate(two([{ server: 'gpu-1', at: 0, factor: 100 }]));
    expect(counts.broken).toBe(0);
    expect(servers[0]?.utilization).toBeGreaterThan(0.4);
  });

  it('must be one of the servers, and have a pace that can be changed', () => {
    expect(() => simulate(oneSlot([{ server: 'gpu-7', at: 1, factor: 2 }]))).toThrow(
      /slowdowns\[0\]\.server: expected one of the servers gpu; got "gpu-7"/,
    );
    expect(() => simulate(oneSlot([{ server: 'gpu', at: 1, factor: 0 }]))).toThrow(FlowConfigError);
    const fixed = (id: string): SimServer => ({
      id,
      accept: () => undefined,
      abort: () => undefined,
      hasRoom: () => true,
      load: () => ({ waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 }),
      use: () => ({ utilization: 0, meanRunning: 0, meanKvUsage: 0, peakKvUsage: 0, preemptions: 0 }),
    });
    const custom = oneSlot([{ server: 'gpu', at: 1, factor: 2 }], {
      servers: [{ name: 'gpu', model: 'custom', create: fixed }],
    });
    expect(() => simulate(custom)).toThrow(
      /slowdowns\[0\]\.server: expected a server whose model has the method slowDown; got "gpu"/,
    );
  });
});

describe('quotas in a simulation', () => {
  const scenario = `
duration: 120s
drain: 0s
servers: [{ model: continuous-batching, maxSequences: 200 }]
traffic:
  - { tenant: a, arrivals: { type: poisson, rate: 20 }, promptTokens: 300, outputTokens: 100 }
plugins:
  - type: quota-detector
    parameters: { output: average, groups: [{ quotas: [{ unit: tokens, limit: 96000, burst: 9600 }] }] }
flowControl: { saturationDetector: { pluginRef: quota-detector }, defaultRequestTTL: 0s }
`;

  it('count the prompt that the request tells, and the answer that it has got', () => {
    const { all } = simulate(loadScenario(scenario).options);
    // 1,600 tokens a second, at 400 each: four a second, and the burst.
    expect(all.completed).toBeGreaterThan(4 * 110);
    expect(all.completed).toBeLessThanOrEqual(4 * 120 + 24);
  });
});
