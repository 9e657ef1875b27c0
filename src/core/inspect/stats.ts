/** Totals of a controller: cheap, and the same whoever asks. */
import type { ReclaimFigures } from '../../eviction/in-flight-evictor.js';
import type { Engine } from '../engine/engine.js';
import type { OutcomeType } from '../outcome/outcome.js';
import type { ShadowFigures } from '../outcome/shadow-figures.js';
import { countInFlight, type FlowInFlight, type InFlightByFlow, listInFlight, oldestLease } from './in-flight.js';

/** Figures. At any time `enqueued` = `dispatched` + `rejected` + `evicted` + `waiting`. */
export interface FlowStats {
  readonly state: 'open' | 'draining' | 'closed';
  /** Requests ever handed to the controller. */
  readonly enqueued: number;
  readonly dispatched: number;
  readonly rejected: number;
  readonly evicted: number;
  /** Settled requests by outcome. */
  readonly outcomes: Readonly<Record<OutcomeType, number>>;
  readonly waiting: number;
  readonly waitingBytes: number;
  /** Leases not yet released. */
  readonly inFlight: number;
  readonly inFlightTokens: number;
  /** Leases in flight by flow: one entry for each flow that runs something. */
  readonly inFlightByFlow: readonly FlowInFlight[];
  readonly released: number;
  /** How long the oldest unreleased lease is held; undefined while nothing runs. */
  readonly oldestLeaseMs: number | undefined;
  /** Leases that were held longer than `maxLeaseMs` so far. */
  readonly overdueLeases: number;
  /** Running requests that were asked to leave for a more important one. */
  readonly evictedInFlight: number;
  /** What eviction wants to free, and what its victims will free, in units of saturation; undefined without it. */
  readonly reclaim: ReclaimFigures | undefined;
  readonly bands: number;
  readonly flows: number;
  /** Read now, scaled so that 1 is full; from inside a plugin or a listener the last reading. */
  readonly saturation: number;
  /** True while requests wait because of the gate. */
  readonly isGateClosed: boolean;
  /** The least Jain index of the fairness policies that keep one; undefined when none does. Computed when read. */
  readonly fairnessIndex: number | undefined;
  /** Faults of policies, detectors, pickers and listeners. */
  readonly pluginErrors: number;
  /** Reports of usage that went backwards or exceeded 2^53, ignored by policies that share by cost or by tokens. */
  readonly ignoredReports: number;
  /** In mode `shadow`: what it would have done. The other figures are then what would have been. */
  readonly shadow?: ShadowFigures | undefined;
}

/** O(bands + in flight). Ask the detector first if you want the saturation of this moment. */
export function takeStats(
  engine: Engine,
  nowMs: number,
  inFlight: InFlightByFlow = countInFlight(engine.seats),
): FlowStats {
  const { backlog, drops, seats } = engine;
  const outcomes = { Dispatched: seats.dispatched, ...drops.counts };
  return {
    state: engine.shutdown.state,
    enqueued: engine.enqueued,
    dispatched: seats.dispatched,
    rejected: outcomes.RejectedCapacity + outcomes.RejectedNoEndpoints + outcomes.RejectedOther,
    evicted:
      outcomes.EvictedTTL + outcomes.EvictedNoEndpoints + outcomes.EvictedContextCancelled + outcomes.EvictedOther,
    outcomes,
    waiting: backlog.waiting,
    waitingBytes: backlog.waitingBytes,
    inFlight: seats.inFlight,
    inFlightTokens: seats.inFlightTokens,
    inFlightByFlow: listInFlight(inFlight),
    released: seats.released,
    oldestLeaseMs: oldestLease(seats, nowMs)?.heldMs,
    overdueLeases: seats.overdue,
    evictedInFlight: seats.evicted,
    reclaim: engine.eviction?.figures,
    bands: backlog.bands.size,
    flows: backlog.bands.flows.size,
    saturation: engine.gate.saturation,
    isGateClosed: engine.dispatcher.isGateClosed,
    fairnessIndex: fairnessIndexOf(engine),
    pluginErrors: engine.events.pluginErrors,
    ignoredReports: backlog.bands.ignoredReports,
    ...(engine.shadow && { shadow: engine.shadow.figures }),
  };
}

function fairnessIndexOf(engine: Engine): number | undefined {
  const asked = new Set<unknown>();
  let least: number | undefined;
  for (const band of engine.backlog.bands.all()) {
    const { fairness } = band.settings;
    if (asked.has(fairness)) continue;
    asked.add(fairness);
    const index = band.policies.selector?.fairnessIndex;
    if (index !== undefined) least = Math.min(least ?? index, index);
  }
  return least;
}
