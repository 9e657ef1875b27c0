/** The simulator against formulas that nobody doubts: waits of M/M/1, M/M/c and M/D/1, and Little's law. */
import { describe, expect, it } from 'vitest';
import { queueing, simulate, slotGate } from './support.js';

/**
 * Mean wait in ms where one service takes 100 ms on average. Erlang's C formula; Pollaczek and Khinchine for constant
 * times.
 */
function erlangWait(servers: number, load: number): number {
  const offered = servers * load;
  let term = 1;
  let sum = 1;
  for (let k = 1; k < servers; k++) {
    term *= offered / k;
    sum += term;
  }
  const last = (term * offered) / servers / (1 - load);
  return ((last / (sum + last)) * 100) / (servers * (1 - load));
}

const loads = [0.5, 0.8, 0.9];

/**
 * Over the more runs the higher the load: the mean of one run of 10^6 at load 0.9 has itself a standard deviation of 2
 * %.
 */
function meanWait(servers: number, load: number, isConstant: boolean): number {
  const runs = load < 0.85 ? 2 : 4;
  const waits = Array.from({ length: runs }, (_, seed) => {
    const base = queueing(servers, load, 1_000_000, { seed: seed + 1, drain: 0 });
    const options = isConstant
      ? { ...base, servers: [{ model: 'slots', slots: servers, serviceTime: 100 } as const] }
      : base;
    return simulate(options).all.queued.meanMs;
  });
  return waits.reduce((sum, wait) => sum + wait, 0) / runs;
}

describe('mean waits over 10^6 requests are within 2 % of theory', () => {
  it.each(loads)('M/M/1 at load %f', { timeout: 240_000 }, (load) => {
    expect(Math.abs(meanWait(1, load, false) / erlangWait(1, load) - 1)).toBeLessThan(0.02);
  });

  it.each(loads)('M/M/4 at load %f', { timeout: 240_000 }, (load) => {
    expect(Math.abs(meanWait(4, load, false) / erlangWait(4, load) - 1)).toBeLessThan(0.02);
  });

  it.each(loads)('M/D/1 at load %f', { timeout: 240_000 }, (load) => {
    expect(Math.abs(meanWait(1, load, true) / ((load * 100) / (2 * (1 - load))) - 1)).toBeLessThan(0.02);
  });
});

describe("Little's law", () => {
  it.each(loads)('holds within half a percent at load %f', (load) => {
    const { meanInSystem, counts, endedAtMs, all } = simulate(queueing(4, load, 100_000, { drain: 0 }));
    expect(meanInSystem / ((counts.requests / endedAtMs) * all.total.meanMs)).toBeCloseTo(1, 2);
    expect(Math.abs(meanInSystem / ((counts.requests / endedAtMs) * all.total.meanMs) - 1)).toBeLessThan(0.005);
  });

  it.each([
    ['batching engines, with two tenants', { model: 'continuous-batching', kvTokens: 20_000, count: 2 }],
    ['the server of the VTC paper', { model: 'vtc-serving' }],
  ] as const)('holds within half a percent for %s', (_, server) => {
    const { meanInSystem, counts, endedAtMs, all, isCutShort } = simulate({
      duration: '1h',
      servers: [server],
      traffic: ['a', 'b'].map((tenant) => ({
        tenant,
        arrivals: { type: 'poisson', rate: 0.6 },
        promptTokens: { type: 'exponential', mean: 200 },
        outputTokens: { type: 'exponential', mean: 100 },
      })),
      flow: slotGate(16),
    });
    expect(isCutShort).toBe(false);
    expect(counts.completed).toBe(counts.requests);
    expect(Math.abs(meanInSystem / ((counts.requests / endedAtMs) * all.total.meanMs) - 1)).toBeLessThan(0.005);
  });
});
