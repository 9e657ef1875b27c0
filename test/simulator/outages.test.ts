/** Servers that die: what ran there is tried again or lost, what comes goes elsewhere, and the figures balance. */
import { describe, expect, it } from 'vitest';
import { concurrencyDetector, FlowConfigError } from '../../src/index.js';
import { type Outage, Simulation, type SimulationOptions, simulate } from '../../src/simulator/index.js';

function twoServers(outages: readonly Outage[], more: Partial<SimulationOptions> = {}): SimulationOptions {
  return {
    duration: 10_000,
    servers: [{ name: 'gpu', model: 'slots', count: 2, slots: 2, serviceTime: 1000 }],
    traffic: [{ tenant: 'a', arrivals: { type: 'fixed', rate: 2, offset: 0.5 } }],
    outages,
    flow: () => ({ saturationDetector: concurrencyDetector({ maxConcurrency: 2 }), defaultRequestTtl: 0 }),
    ...more,
  };
}

describe('a server that dies', () => {
  it('loses what it ran, which another server begins anew', () => {
    const { counts, all, servers } = simulate(twoServers([{ server: 'gpu-0', at: 2000 }]));
    expect(counts.broken).toBeGreaterThan(0);
    expect(all).toMatchObject({ arrived: 20, completed: 20, failed: 0, retries: counts.broken });
    expect(counts.dispatched).toBe(counts.completed + counts.broken);
    expect(servers.map(({ utilization }) => utilization > 0.3)).toEqual([false, true]);
  });

  it('ends the answers that had begun', () => {
    const streaming = { name: 'gpu', model: 'continuous-batching', count: 2 } as const;
    const { counts, all } = simulate(
      twoServers([{ server: 'gpu-0', at: 2000, for: 1000 }], {
        servers: [streaming],
        traffic: [{ tenant: 'a', arrivals: { type: 'fixed', rate: 20 }, promptTokens: 100, outputTokens: 200 }],
        flow: () => ({ saturationDetector: concurrencyDetector({ maxConcurrency: 40 }) }),
      }),
    );
    expect(all.failed).toBeGreaterThan(0);
    expect(counts.broken).toBe(all.failed + all.retries);
    expect(all.arrived).toBe(all.completed + all.failed);
  });

  it('gets nothing until it is back, and then its part', () => {
    const simulation = new Simulation(twoServers([{ server: 'gpu-0', at: 2000, for: 4000 }]));
    const runningOn0 = (): number => simulation.servers[0]!.load().runningRequests;
    simulation.runUntil(1900);
    expect(runningOn0()).toBeGreaterThan(0);
    for (let atMs = 2100; atMs < 6000; atMs += 100) {
      simulation.runUntil(atMs);
      expect(runningOn0()).toBe(0);
    }
    simulation.runUntil(8000);
    expect(runningOn0()).toBeGreaterThan(0);
  });

  it('may be all there are: what comes waits for the first that is back', () => {
    const outages = [
      { server: 'gpu-0', at: 1000, for: 3000 },
      { server: 'gpu-1', at: 1000, for: 5000 },
    ];
    const { all } = simulate(twoServers(outages));
    expect(all.completed).toBe(20);
    expect(all.queued.maxMs).toBeGreaterThan(2500);
  });

  it('must be one of the servers', () => {
    expect(() => simulate(twoServers([{ server: 'gpu-7', at: 1 }]))).toThrow(FlowConfigError);
    expect(() => simulate(twoServers([{ server: 'gpu-7', at: 1 }]))).toThrow(
      /outages\[0\]\.server: expected one of the servers gpu-0, gpu-1; got "gpu-7"/,
    );
  });
});
