/**
 * The picture for somebody who watches: bands, their largest flows, the longest waits and why. Costs the same with a hundred thousand
 * waiting requests as with a thousand.
 */

import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Dispatcher } from '../engine/dispatcher.js';
import type { QueueItem } from '../engine/queue-item.js';
import type { WaitExplanation } from '../outcome/explanation.js';
import { type FlowDemand, takeDemand } from './demand.js';
import { explainWait } from './explain-wait.js';
import { type ServiceOverview, serviceOverview } from './service-overview.js';
import { type EndpointSnapshot, endpointSnapshots, type FlowStats, takeStats } from './snapshot.js';
import { Top } from './top.js';

/** How much of each is shown. */
export interface OverviewBounds {
  /** Bands, the waiting ones first. @default 32 */
  bands?: number | undefined;
  /** Flows of each band, the largest first. @default 8 */
  flows?: number | undefined;
  /** Fairness IDs of each band whose service is shown, those with the most first. @default 12 */
  tenants?: number | undefined;
  /** Requests that wait longest. @default 6 */
  slowest?: number | undefined;
  /** @default 64 */
  endpoints?: number | undefined;
  /** Flows looked at, in all bands together, those that became active first first. @default 4,000 */
  examined?: number | undefined;
}

export interface FlowOverview {
  readonly fairnessId: string;
  readonly waiting: number;
  readonly waitingBytes: number;
  /** True while it is held back for want of an endpoint. */
  readonly isHeld: boolean;
}

export interface BandOverview {
  readonly priority: number;
  readonly waiting: number;
  /** Waiting in flows that are held back for want of an endpoint. */
  readonly held: number;
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
  /** Highest priority first. */
  readonly bands: readonly BandOverview[];
  readonly otherBands: number;
  readonly endpoints: readonly EndpointSnapshot[];
  readonly otherEndpoints: number;
  /** Longest first, of the flows examined. */
  readonly slowest: readonly SlowWait[];
}

/** Members of one queue that are looked at to find a place or the next in line. */
const mostMembers = 1_000;

export function takeOverview(
  dispatcher: Dispatcher,
  { bands: bandCount = 32, flows = 8, tenants = 12, slowest = 6, endpoints = 64, examined = 4_000 }: OverviewBounds,
  pluginErrors: number,
  nowMs: number,
): ControllerOverview {
  const { bands: demands, ...demand } = takeDemand(dispatcher, nowMs);
  const shown = mostRelevant(dispatcher.backlog.bands.all(), bandCount);
  const oldest = new Top<QueueItem>(slowest, (a, b) => a.waitingSinceMs - b.waitingSinceMs || a.sequence - b.sequence);
  let left = examined;
  const bands = shown.map((band) => {
    const largest = new Top<Flow>(flows, (a, b) => b.waiting - a.waiting);
    left = examine(band, largest, oldest, left);
    const rates = demands.find(({ priority }) => priority === band.priority);
    const service = serviceOverview(band, tenants, nowMs);
    return { ...bandOverview(band, largest.members, dispatcher, rates as FlowDemand['bands'][number]), service };
  });
  const members = endpointSnapshots(dispatcher.seats.pool, endpoints);
  return {
    atMs: nowMs,
    stats: takeStats(dispatcher, pluginErrors),
    demand,
    bands,
    otherBands: dispatcher.backlog.bands.size - shown.length,
    endpoints: members,
    otherEndpoints: (demand.endpoints ?? 0) - members.length,
    slowest: oldest.members.map((item) => ({ fairnessId: item.fairnessId, ...explainWait(dispatcher, item, nowMs, mostMembers) })),
  };
}

/** Highest priority first; when there are too many, those without waiting requests are left out first, then the lowest. */
function mostRelevant(bands: readonly PriorityBand[], count: number): readonly PriorityBand[] {
  if (bands.length <= count) return bands;
  const ranked = [...bands].sort((a, b) => Number(b.waiting > 0) - Number(a.waiting > 0) || b.priority - a.priority);
  return ranked.slice(0, count).sort((a, b) => b.priority - a.priority);
}

/** Looks at up to `left` flows of a band; returns how many more may be looked at. */
function examine(band: PriorityBand, largest: Top<Flow>, oldest: Top<QueueItem>, left: number): number {
  if (band.sharesQueue && band.firstActive !== undefined) {
    for (const item of band.queueOf(band.firstActive)?.leading(oldest.count) ?? []) oldest.offer(item as QueueItem);
  }
  let rest = left;
  for (const flow of eachWaitingFlow(band)) {
    if (rest-- <= 0) return 0;
    largest.offer(flow);
    if (band.sharesQueue || flow.queue === undefined) continue;
    // In arrival order a flow whose first request has not waited long enough has no other that has.
    const head = flow.queue.peek() as QueueItem | undefined;
    if (head === undefined || !oldest.offer(head)) continue;
    for (const item of flow.queue.leading(oldest.count)) if (item !== head) oldest.offer(item as QueueItem);
  }
  return rest;
}

function* eachWaitingFlow(band: PriorityBand): Generator<Flow, void, undefined> {
  yield* band.activeFlows();
  yield* band.held.flows();
}

function bandOverview(
  band: PriorityBand,
  largest: readonly Flow[],
  { gate }: Dispatcher,
  { arrivedPerSecond, dispatchedPerSecond, timeToDrainMs }: FlowDemand['bands'][number],
): Omit<BandOverview, 'service'> {
  const { priority, waiting, ceiling, held, settings } = band;
  return {
    priority,
    waiting,
    held: held.waiting,
    maxRequests: settings.limits.maxRequests,
    saturation: gate.saturationFor(band),
    ceiling,
    fairness: settings.fairness.type,
    ordering: settings.ordering.type,
    arrivedPerSecond,
    dispatchedPerSecond,
    timeToDrainMs,
    flows: largest.map(({ fairnessId, waiting, waitingBytes, heldIn }) => ({
      fairnessId,
      waiting,
      waitingBytes,
      isHeld: heldIn !== undefined,
    })),
    otherFlows: band.activeCount + held.flowCount - largest.length,
    otherWaiting: waiting - largest.reduce((sum, flow) => sum + flow.waiting, 0),
  };
}
