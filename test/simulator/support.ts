/** Scenarios that several tests start from. */
import { concurrencyDetector } from '../../src/index.js';
import { type SimulatedFlow, type SimulationOptions, simulate } from '../../src/simulator/index.js';

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

export { simulate };
