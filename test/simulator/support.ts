/** Scenarios that several tests start from. */
import { concurrencyDetector } from '../../src/index.js';
import {
  type SimulatedFlow,
  type SimulationOptions,
  type SimulationResult,
  simulate,
} from '../../src/simulator/index.js';

/** As many in flight as the servers have slots, and no limit on what waits. */
export function slotGate(maxConcurrency: number, more: Partial<SimulatedFlow> = {}): () => SimulatedFlow {
  const limits = { maxRequests: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };
  return () => ({
    saturationDetector: concurrencyDetector({ maxConcurrency }),
    defaultRequestTtl: 0,
    limits,
    defaultBand: { limits },
    bands: [{ priority: 0, limits }],
    ...more,
  });
}

/** Poisson arrivals at `load` times what `slots` servers of 100 ms each can do. */
export function queueing(
  slots: number,
  load: number,
  requests: number,
  more: Partial<SimulationOptions> = {},
): SimulationOptions {
  const rate = (slots * 10 * load) as number;
  return {
    duration: (requests / rate) * 1000,
    servers: [{ model: 'slots', slots, serviceTime: { type: 'exponential', mean: 100 } }],
    traffic: [{ tenant: 'a', arrivals: { type: 'poisson', rate } }],
    flow: slotGate(slots),
    ...more,
  };
}

/** A run in which everybody is dropped: nothing may run, and waiting is short. */
export const starved: SimulationResult = simulate({
  duration: '10s',
  servers: [{ model: 'slots', slots: 1, serviceTime: 100 }],
  traffic: [{ arrivals: { type: 'poisson', rate: 20 } }],
  serviceDifference: {},
  flow: { saturationDetector: () => 2, defaultRequestTtl: 10 },
});

export { simulate };
