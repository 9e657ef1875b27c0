/** Bands without a controller around them, their flows and requests. */
import { fcfs, type ItemView, roundRobin } from '../../src/index.js';
import type { WaitingItem } from '../../src/tiers/flow.js';
import { Flow } from '../../src/tiers/flow.js';
import { type BandSettings, PriorityBand } from '../../src/tiers/priority-band.js';
import { fakeItem } from './fake-item.js';

const unlimited = { maxRequests: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };

/** Without limits and caps, in turn and in order. */
export const bandSettings: BandSettings = {
  limits: unlimited,
  flowLimits: unlimited,
  requestTtlMs: 60_000,
  fairness: roundRobin(),
  ordering: fcfs(),
  holdsFlows: false,
  parksFlows: false,
  maxInFlightPerFlow: undefined,
  minShare: 0,
  endpoints: undefined,
};

/** A configured band, and the faults of its policies as they are reported. */
export function makeBand(own: Partial<BandSettings> = {}, priority = 0): { band: PriorityBand; faults: string[] } {
  const faults: string[] = [];
  const pluginFailed = (kind: string, type: string, error: unknown): void =>
    void faults.push(`${kind} ${type}: ${String(error)}`);
  return { band: new PriorityBand(priority, true, { ...bandSettings, ...own }, { pluginFailed }, 0), faults };
}

/** The flow of that name, made when missing. */
export function flowOf(band: PriorityBand, name: string): Flow {
  const flow = band.flows.get(name) ?? new Flow(name, name, band, band.policies.queueForFlow());
  band.flows.set(name, flow);
  return flow;
}

interface Waiting extends WaitingItem {
  isWaiting: boolean;
}

/** A request of a fairness ID that waits in the band. */
export function addTo(
  band: PriorityBand,
  fairnessId: string,
  sequence: number,
  own: Partial<ItemView & WaitingItem> = {},
): Waiting {
  const item: Waiting = {
    ...fakeItem({ fairnessId, sequence }),
    flow: undefined,
    requestClass: undefined,
    isWaiting: true,
    ...own,
  };
  band.add(item, flowOf(band, fairnessId));
  return item;
}
