/** The picture for a live page: bands, flows, longest waits. Of bounded cost, unless all flows are asked for. */
import type { output } from 'zod/v4/core';
import { requestField } from '../../base/request-field.js';
import * as s from '../../base/schema/schema.js';
import { sum } from '../../base/sum.js';
import type { EndpointState, EndpointView } from '../../endpoints/endpoint.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Engine } from '../engine/engine.js';
import type { QueueItem } from '../engine/queue-item.js';
import type { FlowController } from '../flow-controller.js';
import type { FlowRequest } from '../flow-request.js';
import type { Limits } from '../options.js';
import type { WaitExplanation } from '../outcome/explanation.js';
import { engineFor } from './engine-of.js';
import { waitOf } from './explain-wait.js';
import { type BandTotals, bandTotals, type ControllerTotals, controllerTotals } from './figures.js';
import type { Depth, Examined, FlowStanding } from './flow-standings.js';
import { examineFlows, standings as standingsOf } from './flow-standings.js';
import { countInFlight, type InFlightByFlow } from './in-flight.js';
import { type ServiceOverview, serviceOverview } from './service-overview.js';
import { TopN } from './top-n.js';

/** How much is shown. */
export interface OverviewBounds {
  /**
   * Flows of each band, the largest first; half as many more of all bands, and fairness IDs with their service.
   * `'all'`: every flow, band and endpoint, at O(waiting · log waiting). @default 8
   */
  flows?: number | 'all' | undefined;
  /** Requests that wait longest, one of each flow. @default 6 */
  waits?: number | 'all' | undefined;
}

export interface BandOverview extends BandTotals {
  /** Leases not yet released. */
  readonly inFlight: number;
  /** Requests in flows that are held back because no endpoint can take their first request. */
  readonly held: number;
  readonly flowLimits: Limits;
  /** Infinity = for ever. */
  readonly requestTtlMs: number;
  readonly saturation: number;
  readonly fairness: string;
  readonly ordering: string;
  /** Flows known, idle ones included. */
  readonly knownFlows: number;
  /** The largest of those examined. Flows of one queue show their part of it; classes that queue apart come apart. */
  readonly flows: readonly FlowStanding[];
  /** Flows with waiting requests that are not among them, and what waits there. */
  readonly otherFlows: number;
  readonly otherWaiting: number;
  /** Undefined where the fairness policy does not share by cost. Counted from the first overview on. */
  readonly service: ServiceOverview | undefined;
}

/** A model server. */
export interface EndpointOverview
  extends Pick<EndpointView, 'id' | 'labels' | 'inFlightRequests' | 'inFlightTokens' | 'metrics'> {
  /** Requests that fit there by the controller's detector; undefined where that goes by something else. */
  readonly seats: number | undefined;
  /** True while it gets no work because it refused some requests. */
  readonly isOverloaded: boolean;
  /** True when it may get requests: not ill, draining or overloaded, with the metrics that the detector needs. */
  readonly isAvailable: boolean;
  readonly state: EndpointState;
}

/** One of the requests that wait longest. */
export interface SlowWait extends WaitExplanation {
  readonly fairnessId: string;
  /** The field `id` of the host's request, if it has one. */
  readonly requestId: unknown;
}

export interface ControllerOverview extends ControllerTotals {
  /** Highest priority first; at most 32, the waiting ones first. */
  readonly bands: readonly BandOverview[];
  readonly otherBands: number;
  /** At most 64. */
  readonly endpoints: readonly EndpointOverview[];
  readonly otherEndpoints: number;
  /** The longest wait of each flow, longest first, of the 4,000 flows that are examined. */
  readonly waits: readonly SlowWait[];
  /** Flows with requests: first those whose oldest has waited longest, then those that run most with none waiting. */
  readonly standings: readonly FlowStanding[];
  /** Further waiting flows, and further flows that only run. */
  readonly otherStandings: number;
}

const mostBands = 32;
const mostEndpoints = 64;
/** Flows looked at, in all bands together, those that became active first first. */
const mostExamined = 4_000;
/** Members looked at: of a queue to find a place, of one that several flows share, of one in no order of arrival. */
const bounded: Depth = { place: 1_000, shared: 1_000, unordered: 16 };
const all = Infinity;
const unbounded: Depth = { place: all, shared: all, unordered: all };

const bound = s.value("a number from 0 up, or 'all'", (given): given is number | 'all' => {
  return given === 'all' || (typeof given === 'number' && given >= 0);
});
const boundsSchema = s.object({ flows: s.optional(bound, 8), waits: s.optional(bound, 6) });

/**
 * The figures, the largest flows, the longest waits and why. It costs the same however many wait, unless all flows are
 * asked for: 30 ms and more for 100,000. @throws FlowConfigError for wrong bounds, and for what is no controller
 */
export function overviewOf<R extends FlowRequest>(
  flow: FlowController<R>,
  bounds: OverviewBounds = {},
): ControllerOverview {
  const engine = engineFor('overviewOf', flow);
  const given = s.parse(boundsSchema, bounds, 'overviewOf');
  return engine.figures((nowMs) => takeOverview(engine, given, nowMs));
}

function takeOverview(engine: Engine, bounds: output<typeof boundsSchema>, nowMs: number): ControllerOverview {
  const showsAll = bounds.flows === 'all';
  const flows = bounds.flows === 'all' ? all : bounds.flows;
  const waits = bounds.waits === 'all' ? all : bounds.waits;
  const depth = showsAll ? unbounded : bounded;
  const inFlight = countInFlight(engine.seats);
  const bands = engine.backlog.bands.all();
  const totals = new Map(bands.map((band) => [band, bandTotals(band, nowMs)]));
  const shown = mostRelevant(bands, showsAll ? all : mostBands);
  const longest = new TopN<QueueItem>(waits, (a, b) => a.waitingSinceMs - b.waitingSinceMs || a.sequence - b.sequence);
  const standings = standingsOf(engine, inFlight, Math.floor(1.5 * flows), depth, nowMs);
  let left = showsAll ? all : mostExamined;
  const overviews = shown.map((band): BandOverview => {
    const largest = new TopN<Examined>(flows, (a, b) => b.flow.waiting - a.flow.waiting);
    for (const found of examineFlows(band, left, depth)) {
      left--;
      largest.offer(found);
      standings.offer(found);
      if (found.oldest !== undefined) longest.offer(found.oldest);
    }
    const largestFlows = largest.members.map((found) => standings.of(found));
    return {
      ...(totals.get(band) as BandTotals),
      ...bandOverview(band, largestFlows, inFlight, engine),
      service: serviceOverview(band, Math.floor(1.5 * flows), nowMs),
    };
  });
  const endpoints = endpointOverviews(engine, nowMs, showsAll ? all : mostEndpoints);
  const controller = controllerTotals(engine, [...totals.values()], nowMs, inFlight);
  const listed = standings.take();
  return {
    ...controller,
    bands: overviews,
    otherBands: bands.length - shown.length,
    endpoints,
    otherEndpoints: (controller.pool?.endpoints ?? 0) - endpoints.length,
    waits: longest.members.map((item) => ({
      fairnessId: item.fairnessId,
      requestId: requestField(item.request, 'id'),
      ...waitOf(engine, item, nowMs, depth.place),
    })),
    standings: listed,
    otherStandings: Math.max(0, countFlows(bands, inFlight) - listed.length),
  };
}

/** Flows with requests waiting or running. O(bands + flows that run). */
function countFlows(bands: readonly PriorityBand[], inFlight: InFlightByFlow): number {
  const waiting = bands.reduce((sum, band) => sum + waitingFlowsOf(band), 0);
  let onlyRun = 0;
  for (const [priority, flows] of inFlight) {
    const known = bands.find((band) => band.priority === priority)?.flows;
    for (const fairnessId of flows.keys()) if ((known?.get(fairnessId)?.waiting ?? 0) === 0) onlyRun++;
  }
  return waiting + onlyRun;
}

function waitingFlowsOf({ active, aside }: PriorityBand): number {
  return active.size + aside.flows.size;
}

/** Highest priority first; when there are too many, those where nothing waits are left out first, then the lowest. */
function mostRelevant(bands: readonly PriorityBand[], count: number): readonly PriorityBand[] {
  if (bands.length <= count) return bands;
  const ranked = [...bands].sort((a, b) => Number(b.waiting > 0) - Number(a.waiting > 0) || b.priority - a.priority);
  return ranked.slice(0, count).sort((a, b) => b.priority - a.priority);
}

function bandOverview(band: PriorityBand, flows: readonly FlowStanding[], inFlight: InFlightByFlow, { gate }: Engine) {
  const { flowLimits, requestTtlMs, fairness, ordering } = band.settings;
  return {
    inFlight: sum(inFlight.get(band.priority)?.values() ?? [], (flow) => flow.inFlight),
    held: band.aside.waiting.held,
    flowLimits,
    requestTtlMs,
    saturation: gate.readingFor(band).saturation,
    fairness: fairness.type,
    ordering: ordering.type,
    knownFlows: band.flows.size,
    flows,
    otherFlows: waitingFlowsOf(band) - flows.length,
    otherWaiting: band.waiting - flows.reduce((sum, { waiting }) => sum + waiting, 0),
  };
}

/** The first `count` members of the pool. */
function endpointOverviews({ seats: { pool }, gate }: Engine, nowMs: number, count: number): EndpointOverview[] {
  const available = new Set(gate.available(nowMs));
  const shown = pool.endpoints.slice(0, count).filter((endpoint) => !endpoint.isImplicit);
  return shown.map((endpoint) => {
    const { id, labels, inFlightRequests, inFlightTokens, overloadedUntilMs, metrics, state } = endpoint;
    const isOverloaded = overloadedUntilMs > pool.now();
    const seats = gate.seatsOf(endpoint, nowMs);
    const isAvailable = available.has(endpoint);
    return { id, labels, inFlightRequests, inFlightTokens, seats, isOverloaded, isAvailable, state, metrics };
  });
}
