/** What must hold of every run, without any number to compare with. */
import { describe, expect, it } from 'vitest';
import { concurrencyDetector, inFlightEviction, roundRobin, sheddableOnly } from '../../src/index.js';
import { Simulation, type SimulationOptions, type TrafficSpec } from '../../src/simulator/index.js';
import { queueing, simulate, slotGate } from './support.js';

/** Everything at once: three tenants, batching servers, bursts, impatience, retries, eviction. */
function crowd(seed: number): SimulationOptions {
  return {
    seed,
    duration: '2m',
    servers: [{ model: 'continuous-batching', count: 2, kvTokens: 8000, maxSequences: 24 }],
    traffic: [
      {
        tenant: 'chat',
        priority: 10,
        arrivals: { type: 'gamma', rate: { type: 'on-off', high: 12, low: 2, on: 20_000, off: 20_000 }, cv: 2 },
        promptTokens: { type: 'lognormal', mean: 200, sigma: 0.8 },
        outputTokens: { type: 'exponential', mean: 80 },
        client: { patience: '4s' as unknown as number, retries: { max: 2, budget: 0.3 } },
        slo: { ttft: 1000 },
      },
      {
        tenant: 'agent',
        arrivals: { type: 'sessions', rate: 0.5, turns: 4, toolTime: 700 },
        promptTokens: 150,
        outputTokens: 60,
      },
      {
        tenant: 'batch',
        priority: -1,
        arrivals: { type: 'closed-loop', threads: 20 },
        promptTokens: 400,
        outputTokens: { type: 'uniform', from: 50, to: 300 },
      },
    ],
    flow: () => ({
      saturationDetector: concurrencyDetector({ maxConcurrency: 12 }),
      limits: { maxRequests: 60 },
      eviction: inFlightEviction({ filter: sheddableOnly() }),
      defaultRequestTtl: '20s',
      defaultBand: { fairness: roundRobin() },
    }),
  };
}

const poisson = (tenant: string, rate: number, more: Partial<TrafficSpec> = {}): TrafficSpec => ({
  tenant,
  arrivals: { type: 'poisson', rate },
  ...more,
});

describe('every run', () => {
  it('is the same, byte for byte, for the same seed, and another for another', () => {
    const text = JSON.stringify(simulate(crowd(7)));
    expect(JSON.stringify(simulate(crowd(7)))).toBe(text);
    expect(JSON.stringify(simulate(crowd(8)))).not.toBe(text);
  });

  it.each([1, 2, 3])('gives every request one end, and loses no seat (seed %i)', (seed) => {
    const { counts, all, isCutShort, pluginErrors } = simulate(crowd(seed));
    const dropped = Object.values(counts.dropped).reduce((sum, drops) => sum + drops, 0);
    expect(pluginErrors).toBe(0);
    expect(isCutShort).toBe(false);
    expect(counts.evicted).toBeGreaterThan(0);
    expect(counts.dispatched).toBe(counts.completed + counts.evicted + counts.cancelled + counts.inFlight);
    expect(counts.attempts + counts.requeued).toBe(counts.dispatched + dropped + counts.waiting);
    const forGood = Object.values(all.dropped).reduce((sum, drops) => sum + drops, 0);
    expect(all.arrived).toBe(counts.requests);
    expect(counts.requests).toBe(all.completed + forGood + all.cancelled + all.evicted);
    expect(counts.inFlight + counts.waiting).toBe(0);
  });

  it('lets no slot idle while an eligible request waits', () => {
    const simulation = new Simulation(queueing(4, 0.95, 5000));
    let waited = 0;
    while (simulation.step()) {
      const { waiting, inFlight } = simulation.flow.stats();
      if (waiting > 0) {
        waited++;
        expect(inFlight).toBe(4);
      }
    }
    expect(waited).toBeGreaterThan(1000);
  });

  it('takes half the time when every rate and every speed doubles', () => {
    const slow = simulate(queueing(3, 0.9, 20_000));
    const base = queueing(3, 0.9, 20_000);
    const fast = simulate({
      ...base,
      duration: Number(base.duration) / 2,
      servers: [{ model: 'slots', slots: 3, serviceTime: { type: 'exponential', mean: 50 } }],
      traffic: [poisson('a', 3 * 20 * 0.9)],
    });
    expect(fast.counts).toEqual(slow.counts);
    expect(fast.all.queued.p99Ms * 2).toBeCloseTo(slow.all.queued.p99Ms, 6);
    expect(fast.endedAtMs * 2).toBeCloseTo(slow.endedAtMs, 5);
  });
});

describe('a tenant that stops sending', () => {
  const tenants = ['a', 'b', 'c'];
  const scenario = (present: readonly string[], more: Partial<SimulationOptions> = {}): SimulationOptions => ({
    duration: '200s',
    drain: 0,
    servers: [{ model: 'slots', slots: 4, serviceTime: 100 }],
    traffic: present.map((tenant) => poisson(tenant, tenant === 'c' ? 40 : 12)),
    flow: slotGate(4, { bands: [{ priority: 0, fairness: roundRobin() }] }),
    ...more,
  });

  it('never makes the others worse off, where capacity is shared', () => {
    const all = simulate(scenario(tenants));
    const without = simulate(scenario(['a', 'b']));
    for (const tenant of ['a', 'b']) {
      expect(without.tenants[tenant]!.arrived).toBe(all.tenants[tenant]!.arrived);
      expect(without.tenants[tenant]!.queued.meanMs).toBeLessThanOrEqual(all.tenants[tenant]!.queued.meanMs);
      expect(without.tenants[tenant]!.completed).toBeGreaterThanOrEqual(all.tenants[tenant]!.completed - 1);
    }
  });

  it('changes nothing for the others, where each has a server of its own', () => {
    const own = (present: readonly string[]): SimulationOptions => ({
      ...scenario(present),
      servers: tenants.map((name) => ({ name, model: 'slots', slots: 2, serviceTime: 100, labels: { tenant: name } })),
      flow: () => ({
        saturationDetector: concurrencyDetector({ maxConcurrency: 2 }),
        headroom: 'required',
        holBlocking: 'none',
        endpointFilters: [
          {
            type: 'own-server',
            classOf: ({ fairnessId }) => fairnessId,
            keep: (endpoints, name) => endpoints.filter(({ labels }) => labels.tenant === name),
          },
        ],
      }),
    });
    const all = simulate(own(tenants));
    const without = simulate(own(['a', 'b']));
    for (const tenant of ['a', 'b']) expect(without.tenants[tenant]).toEqual(all.tenants[tenant]);
  });
});

describe('strict priority', () => {
  it("keeps the high band's waits within one request's residual, whatever the low band's load", () => {
    const high = (low: number): number => {
      const { classes } = simulate({
        duration: '500s',
        drain: 0,
        servers: [{ model: 'slots', slots: 1, serviceTime: 100 }],
        traffic: [poisson('high', 5, { priority: 10 }), poisson('low', low, { priority: 0 })],
        flow: slotGate(1),
      });
      return classes['priority 10']!.queued.meanMs;
    };
    const alone = high(0.001);
    for (const low of [2, 4, 20]) expect(high(low)).toBeLessThanOrEqual(alone + 100 / (1 - 0.5));
  });
});
