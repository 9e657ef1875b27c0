/** Totals, which are cheap, and the full picture of one moment, which is not. */
import type { EndpointMetrics, EndpointState } from '../../endpoints/endpoint.js';
import type { ReclaimFigures } from '../../eviction/in-flight-evictor.js';
import type { QuotaFigures } from '../../gate/quota-figure.js';
import type { SessionFigures } from '../../gate/session-figures.js';
import type { ServiceFigures } from '../../tiers/2-fairness/service-figures.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Engine } from '../engine/engine.js';
import type { CapState } from '../engine/in-flight-caps.js';
import type { Limits } from '../options.js';
import type { OutcomeType } from '../outcome/outcome.js';
import type { ShadowFigures } from '../outcome/shadow-figures.js';
import {
  countInFlight,
  type FlowInFlight,
  type InFlightByFlow,
  type LeaseAge,
  listInFlight,
  oldestLease,
} from './in-flight.js';

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
  /**
   * The room that eviction wants to free, and the room that its victims will free, in units of saturation; undefined
   * without eviction.
   */
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
  /**
   * Reports of usage that went backwards or exceeded 2^53, and that policies which share by cost, or shares of tokens,
   * ignored.
   */
  readonly ignoredReports: number;
  /** In mode `shadow`: what it would have done. The other figures are then what would have been. */
  readonly shadow?: ShadowFigures | undefined;
}

export interface FlowSnapshot {
  readonly fairnessId: string;
  readonly waiting: number;
  readonly waitingBytes: number;
  readonly oldestWaitMs: number;
  /** Leases not yet released, and the tokens booked for them. */
  readonly inFlight: number;
  readonly inFlightTokens: number;
  /** True while it waits for the end of one of its own requests, because it is at its cap. */
  readonly isAtCap: boolean;
  /** Its cap on what it runs at a time, Infinity = unlimited, and how much of that it runs; undefined without a cap. */
  readonly cap: FlowCap | undefined;
}

export interface FlowCap {
  readonly maxRequests: number;
  readonly maxTokens: number;
  readonly requests: number;
  readonly tokens: number;
}

export interface BandSnapshot {
  readonly priority: number;
  readonly isConfigured: boolean;
  readonly waiting: number;
  readonly waitingBytes: number;
  readonly limits: Limits;
  readonly flowLimits: Limits;
  /** Infinity = for ever. */
  readonly requestTtlMs: number;
  readonly ceiling: number;
  readonly fairness: string;
  readonly ordering: string;
  /** Recent dispatches per second; undefined when nothing was measured. */
  readonly dispatchedPerSecond: number | undefined;
  /** Flows known, idle ones included. */
  readonly flows: number;
  /** Flows with waiting requests, longest active first. Flows that are held back or at their cap come last. */
  readonly activeFlows: readonly FlowSnapshot[];
  /**
   * Cost that fairness IDs received and were owed lately, counted from the first time that somebody asks; undefined
   * where the fairness policy does not share by cost.
   */
  readonly service: ServiceFigures | undefined;
}

export interface EndpointSnapshot {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly inFlightRequests: number;
  readonly inFlightTokens: number;
  /** Requests that fit there by the controller's detector; undefined where that goes by something else. */
  readonly seats: number | undefined;
  /** True while it gets no work because it refused some requests. */
  readonly isOverloaded: boolean;
  /**
   * True when it may get requests: it is not ill, draining or overloaded, and has the metrics that the detector needs.
   */
  readonly isAvailable: boolean;
  readonly state: EndpointState;
  readonly metrics: EndpointMetrics | undefined;
}

/** Everything at one instant. Costs O(waiting · log waiting): every waiting request is looked at and put in order. */
export interface ControllerSnapshot {
  readonly atMs: number;
  readonly stats: FlowStats;
  /** Undefined while nothing runs. */
  readonly oldestLease: LeaseAge | undefined;
  readonly limits: Limits;
  /** Highest priority first. */
  readonly bands: readonly BandSnapshot[];
  readonly endpoints: readonly EndpointSnapshot[];
  /** Quotas, where a detector has some. */
  readonly quotas?: QuotaFigures | undefined;
  /** Sessions, where a detector limits them. */
  readonly sessions?: SessionFigures | undefined;
}

/** O(bands + in flight). Ask the detector first if you want the saturation of this moment. */
export function takeStats(
  engine: Engine,
  pluginErrors: number,
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
    overdueLeases: engine.desk.overdue,
    evictedInFlight: seats.evicted,
    reclaim: engine.reclaimFigures,
    bands: backlog.bands.size,
    flows: backlog.bands.flows.size,
    saturation: engine.gate.saturation,
    isGateClosed: engine.dispatcher.isGateClosed,
    fairnessIndex: fairnessIndexOf(engine),
    pluginErrors,
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
    const index = band.fairnessIndex;
    if (index !== undefined) least = Math.min(least ?? index, index);
  }
  return least;
}

export function takeSnapshot(engine: Engine, limits: Limits, pluginErrors: number, nowMs: number): ControllerSnapshot {
  const inFlight = countInFlight(engine.seats);
  const quotas = engine.gate.quotas(nowMs);
  const sessions = engine.gate.sessions(nowMs);
  return {
    atMs: nowMs,
    stats: takeStats(engine, pluginErrors, nowMs, inFlight),
    oldestLease: oldestLease(engine.seats, nowMs),
    ...(quotas === undefined ? {} : { quotas }),
    ...(sessions === undefined ? {} : { sessions }),
    limits,
    bands: engine.backlog.bands.all().map((band) => bandSnapshot(engine, band, inFlight, nowMs)),
    endpoints: endpointSnapshots(engine, nowMs),
  };
}

/** The first `count` members of the pool. */
export function endpointSnapshots(
  { seats: { pool }, gate }: Engine,
  nowMs: number,
  count: number = Number.POSITIVE_INFINITY,
): EndpointSnapshot[] {
  const available = new Set(gate.available(nowMs));
  return pool.endpoints
    .slice(0, count)
    .filter((endpoint) => !endpoint.isImplicit)
    .map((endpoint) => {
      const { id, labels, inFlightRequests, inFlightTokens, overloadedUntilMs, metrics, state } = endpoint;
      const isOverloaded = overloadedUntilMs > pool.now();
      const seats = gate.seatsOf(endpoint, nowMs);
      const isAvailable = available.has(endpoint);
      return { id, labels, inFlightRequests, inFlightTokens, seats, isOverloaded, isAvailable, state, metrics };
    });
}

function bandSnapshot(engine: Engine, band: PriorityBand, inFlight: InFlightByFlow, nowMs: number): BandSnapshot {
  const { priority, isConfigured, waiting, waitingBytes, ceiling, settings } = band;
  const { limits, flowLimits, requestTtlMs, fairness, ordering } = settings;
  return {
    priority,
    isConfigured,
    waiting,
    waitingBytes,
    limits,
    flowLimits,
    requestTtlMs,
    ceiling,
    fairness: fairness.type,
    ordering: ordering.type,
    dispatchedPerSecond: band.dispatchedPerSecond(nowMs),
    flows: band.flows.size,
    service: band.service(nowMs),
    activeFlows: flowSnapshots(engine, band, inFlight.get(band.priority), nowMs),
  };
}

function flowSnapshots(
  { parking: { caps } }: Engine,
  band: PriorityBand,
  inFlight: ReturnType<InFlightByFlow['get']>,
  nowMs: number,
): FlowSnapshot[] {
  const oldest = new Map<unknown, number>();
  for (const item of band.waitingItems()) if (!oldest.has(item.flow)) oldest.set(item.flow, item.enqueuedAtMs);
  return band.waitingFlows().map((flow) => {
    const { fairnessId, waiting, waitingBytes } = flow;
    const running = inFlight?.get(fairnessId);
    return {
      fairnessId,
      waiting,
      waitingBytes,
      oldestWaitMs: nowMs - (oldest.get(flow) ?? nowMs),
      inFlight: running?.inFlight ?? 0,
      inFlightTokens: running?.inFlightTokens ?? 0,
      isAtCap: flow.parkedFor !== undefined,
      cap: capOf(caps?.stateOf(flow, band)),
    };
  });
}

/** A cap as readers see it. */
export function capOf(state: CapState | undefined): FlowCap | undefined {
  return state && { ...state.cap, requests: state.account?.requests ?? 0, tokens: state.account?.tokens ?? 0 };
}
