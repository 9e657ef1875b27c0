/**
 * The picture for a live page: bands, their largest flows, and the longest waits with their reasons. Costs the same
 * with a hundred thousand waiting requests as with a thousand.
 */

import { object } from '../../base/schema/containers.js';
import { optional, type Schema, value } from '../../base/schema/element.js';
import { parse } from '../../base/schema/parse.js';
import type { QuotaFigures } from '../../gate/quota-figure.js';
import type { SessionFigures } from '../../gate/session-figures.js';
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Engine } from '../engine/engine.js';
import type { QueueItem } from '../engine/queue-item.js';
import type { Limits, ResolvedOptions } from '../options.js';
import type { WaitExplanation } from '../outcome/explanation.js';
import { type BandDemand, type FlowDemand, takeDemand } from './demand.js';
import { explainWait } from './explain-wait.js';
import { examineFlows, type FlowStanding, FlowStandings } from './flow-standings.js';
import { countInFlight, type InFlightByFlow, type LeaseAge, oldestLease } from './in-flight.js';
import { type ServiceOverview, serviceOverview } from './service-overview.js';
import { type EndpointSnapshot, endpointSnapshots, type FlowStats, takeStats } from './snapshot.js';
import { TopN } from './top-n.js';

/** How much of each is shown. */
export interface OverviewBounds {
  /** Bands, the waiting ones first. @default 32 */
  bands?: number | undefined;
  /** Flows of each band, the largest first. @default 8 */
  flows?: number | undefined;
  /** Fairness IDs of each band whose service is shown, those with the most first. @default 12 */
  tenants?: number | undefined;
  /** Requests that wait longest, one of each flow. @default 6 */
  slowest?: number | undefined;
  /** Flows of all bands that wait longest or run most. @default 24 */
  standings?: number | undefined;
  /** @default 64 */
  endpoints?: number | undefined;
  /** Flows looked at, in all bands together, those that became active first first. @default 4,000 */
  examined?: number | undefined;
}

export interface FlowOverview {
  readonly fairnessId: string;
  readonly waiting: number;
  readonly waitingBytes: number;
  /** True while it is held back because no endpoint can take its first request. */
  readonly isHeld: boolean;
  /** True while it waits for the end of one of its own requests, because it is at its cap. */
  readonly isAtCap: boolean;
}

export interface BandOverview {
  readonly priority: number;
  readonly waiting: number;
  /** Leases not yet released. */
  readonly inFlight: number;
  /** Requests in flows that are held back because no endpoint can take their first request. */
  readonly held: number;
  /** Requests that wait because their fairness ID is at its cap. */
  readonly atCap: number;
  readonly maxRequests: number;
  readonly saturation: number;
  readonly ceiling: number;
  readonly fairness: string;
  readonly ordering: string;
  readonly arrivedPerSecond: number;
  readonly dispatchedPerSecond: number;
  readonly timeToDrainMs: number | undefined;
  /** The largest of those examined; flows of one queue show how much of it is theirs. */
  readonly flows: readonly FlowOverview[];
  /** Flows with waiting requests that are not among them, and what waits there. */
  readonly otherFlows: number;
  readonly otherWaiting: number;
  /** Undefined where the fairness policy does not share by cost. Counted from the first overview on. */
  readonly service: ServiceOverview | undefined;
}

/** One of the requests that wait longest. */
export interface SlowWait extends WaitExplanation {
  readonly fairnessId: string;
}

export interface ControllerOverview {
  readonly atMs: number;
  readonly stats: FlowStats;
  readonly demand: Omit<FlowDemand, 'bands'>;
  /** Of the whole queue; Infinity: none. */
  readonly limits: Limits;
  /** Highest priority first. */
  readonly bands: readonly BandOverview[];
  readonly otherBands: number;
  readonly endpoints: readonly EndpointSnapshot[];
  readonly otherEndpoints: number;
  /** Undefined while nothing runs. */
  readonly oldestLease: LeaseAge | undefined;
  /** The longest wait of each flow, longest first, of the flows examined. */
  readonly slowest: readonly SlowWait[];
  /**
   * Flows with requests waiting or running: those whose oldest request has waited longest first, then those that run
   * most and have nothing waiting.
   */
  readonly standings: readonly FlowStanding[];
  /** Further waiting flows, and further flows that only run. */
  readonly otherStandings: number;
  /** Quotas, where a detector has some. */
  readonly quotas?: QuotaFigures | undefined;
  /** Sessions, where a detector limits them. */
  readonly sessions?: SessionFigures | undefined;
}

/** The most members of one queue that are looked at to find a place or the next request. */
const mostMembers = 1_000;

// @__NO_SIDE_EFFECTS__
function bound(otherwise: number): Schema<number> {
  return optional(value('a number from 0 up', isBound), otherwise);
}

function isBound(given: unknown): given is number {
  return typeof given === 'number' && given >= 0;
}

const boundsSchema = object({
  bands: bound(32),
  flows: bound(8),
  tenants: bound(12),
  slowest: bound(6),
  standings: bound(24),
  endpoints: bound(64),
  examined: bound(4_000),
});

/** @throws FlowConfigError for bounds that are no numbers from 0 up, and for unknown ones */
export function takeOverview(
  engine: Engine,
  given: OverviewBounds,
  { limits }: Pick<ResolvedOptions, 'limits'>,
  pluginErrors: number,
  nowMs: number,
): ControllerOverview {
  const bounds = parse(boundsSchema, given, 'overview');
  const { bands: demands, ...demand } = takeDemand(engine, nowMs);
  const inFlight = countInFlight(engine.seats);
  const all = engine.backlog.bands.all();
  const shown = mostRelevant(all, bounds.bands);
  const oldest = new TopN<QueueItem>(
    bounds.slowest,
    (a, b) => a.waitingSinceMs - b.waitingSinceMs || a.sequence - b.sequence,
  );
  const table = new FlowStandings(bounds.standings);
  let left = bounds.examined;
  const bands = shown.map((band) => {
    const largest = new TopN<Flow>(bounds.flows, (a, b) => b.waiting - a.waiting);
    for (const found of examineFlows(band, left)) {
      left--;
      largest.offer(found.flow);
      table.offer(found);
      if (found.oldest !== undefined) oldest.offer(found.oldest);
    }
    const rates = demands.find(({ priority }) => priority === band.priority) as BandDemand;
    const service = serviceOverview(band, bounds.tenants, nowMs);
    return { ...bandOverview(band, largest.members, inFlight, engine, rates), service };
  });
  const members = endpointSnapshots(engine, nowMs, bounds.endpoints);
  const quotas = engine.gate.quotas(nowMs);
  const sessions = engine.gate.sessions(nowMs);
  const listed = table.take(engine, inFlight, nowMs);
  return {
    atMs: nowMs,
    stats: takeStats(engine, pluginErrors, nowMs, inFlight),
    demand,
    limits: { ...limits },
    bands,
    otherBands: engine.backlog.bands.size - shown.length,
    endpoints: members,
    oldestLease: oldestLease(engine.seats, nowMs),
    otherEndpoints: (demand.endpoints ?? 0) - members.length,
    slowest: oldest.members.map((item) => ({
      fairnessId: item.fairnessId,
      ...explainWait(engine, item, nowMs, mostMembers),
    })),
    standings: listed,
    otherStandings: Math.max(0, countFlows(all, inFlight) - listed.length),
    ...(quotas === undefined ? {} : { quotas }),
    ...(sessions === undefined ? {} : { sessions }),
  };
}

/** Flows with requests waiting or running. O(bands + flows that run). */
function countFlows(bands: readonly PriorityBand[], inFlight: InFlightByFlow): number {
  const waiting = bands.reduce((sum, band) => sum + band.activeCount + band.held.flowCount + band.parked.flowCount, 0);
  let onlyRun = 0;
  for (const [priority, flows] of inFlight) {
    const known = bands.find((band) => band.priority === priority)?.flows;
    for (const fairnessId of flows.keys()) if ((known?.get(fairnessId)?.waiting ?? 0) === 0) onlyRun++;
  }
  return waiting + onlyRun;
}

/**
 * Highest priority first; when there are too many, those without waiting requests are left out first, then the lowest.
 */
function mostRelevant(bands: readonly PriorityBand[], count: number): readonly PriorityBand[] {
  if (bands.length <= count) return bands;
  const ranked = [...bands].sort((a, b) => Number(b.waiting > 0) - Number(a.waiting > 0) || b.priority - a.priority);
  return ranked.slice(0, count).sort((a, b) => b.priority - a.priority);
}

function bandOverview(
  band: PriorityBand,
  largest: readonly Flow[],
  inFlight: InFlightByFlow,
  { gate }: Engine,
  { arrivedPerSecond, dispatchedPerSecond, timeToDrainMs }: BandDemand,
): Omit<BandOverview, 'service'> {
  const { priority, waiting, ceiling, held, parked, settings } = band;
  return {
    priority,
    waiting,
    inFlight: sumOf(inFlight.get(priority)),
    held: held.waiting,
    atCap: parked.waiting,
    maxRequests: settings.limits.maxRequests,
    saturation: gate.saturationFor(band),
    ceiling,
    fairness: settings.fairness.type,
    ordering: settings.ordering.type,
    arrivedPerSecond,
    dispatchedPerSecond,
    timeToDrainMs,
    flows: largest.map(({ fairnessId, waiting, waitingBytes, heldIn, parkedFor }) => ({
      fairnessId,
      waiting,
      waitingBytes,
      isHeld: heldIn !== undefined,
      isAtCap: parkedFor !== undefined,
    })),
    otherFlows: band.activeCount + held.flowCount + parked.flowCount - largest.length,
    otherWaiting: waiting - largest.reduce((sum, flow) => sum + flow.waiting, 0),
  };
}

function sumOf(flows: ReturnType<InFlightByFlow['get']>): number {
  let sum = 0;
  for (const { inFlight } of flows?.values() ?? []) sum += inFlight;
  return sum;
}
