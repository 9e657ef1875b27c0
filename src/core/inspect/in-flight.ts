/** Running requests by flow, counted when read, so that no request pays. Invariant: they add up to the controller's. */
import { put } from '../../base/put.js';
import type { SeatLease, Seats } from '../engine/seats.js';

/** The leases of one fairness ID in one band that are not released yet. */
export interface FlowInFlight {
  readonly fairnessId: string;
  readonly priority: number;
  readonly inFlight: number;
  /** Tokens booked for them. */
  readonly inFlightTokens: number;
}

/** A lease that is held. */
export interface LeaseAge {
  readonly fairnessId: string;
  readonly priority: number;
  /** Undefined for a controller without a pool. */
  readonly endpoint: string | undefined;
  /** Since its dispatch. */
  readonly heldMs: number;
  /** True once it was reported as held longer than `maxLeaseMs`. */
  readonly isOverdue: boolean;
}

/** The lease that is held longest; undefined while nothing runs. O(1). */
export function oldestLease({ running: { first } }: Seats, nowMs: number): LeaseAge | undefined {
  if (first === undefined) return undefined;
  const { fairnessId, priority, endpoint, dispatchedAtMs, isOverdue } = first;
  return { fairnessId, priority, endpoint: endpoint?.id, heldMs: Math.max(0, nowMs - dispatchedAtMs), isOverdue };
}

type Counts = { -readonly [K in keyof FlowInFlight]: FlowInFlight[K] };

/** The flows that run something, by priority and fairness ID. */
export type InFlightByFlow = ReadonlyMap<number, ReadonlyMap<string, FlowInFlight>>;

function count(counts: Counts, { tokens }: SeatLease): void {
  counts.inFlight++;
  counts.inFlightTokens += tokens;
}

/** O(in flight), which the model servers bound. */
export function countInFlight({ running }: Seats): InFlightByFlow {
  const byPriority = new Map<number, Map<string, Counts>>();
  for (const lease of running) {
    const { fairnessId, priority } = lease;
    const flows = byPriority.get(priority) ?? put(byPriority, priority, new Map<string, Counts>());
    const none = { fairnessId, priority, inFlight: 0, inFlightTokens: 0 };
    count(flows.get(fairnessId) ?? put(flows, fairnessId, none), lease);
  }
  return byPriority;
}

/** The flows are in the order in which they began to run something. */
export function listInFlight(byFlow: InFlightByFlow): FlowInFlight[] {
  return [...byFlow.values()].flatMap((flows) => [...flows.values()]);
}

/** The leases of one flow at one endpoint that are not released yet. */
export interface EndpointInFlight extends FlowInFlight {
  readonly endpoint: string;
}

export function countByEndpoint({ running }: Seats): EndpointInFlight[] {
  const found = new Map<string, Counts & { readonly endpoint: string }>();
  for (const lease of running) {
    const { fairnessId, priority, endpoint } = lease;
    if (endpoint === undefined) continue;
    const key = JSON.stringify([endpoint.id, priority, fairnessId]);
    const none = { endpoint: endpoint.id, fairnessId, priority, inFlight: 0, inFlightTokens: 0 };
    count(found.get(key) ?? put(found, key, none), lease);
  }
  return [...found.values()];
}
