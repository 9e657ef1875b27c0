/**
 * The state of single flows: what waits and runs of each, and how long its oldest request has waited. It shows which
 * flow starves, and which flow takes its place.
 *
 * Invariant: looks at a bounded number of flows and of their requests, however many wait.
 */
import type { Flow } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { Engine } from '../engine/engine.js';
import type { Parking } from '../engine/parking.js';
import type { QueueItem } from '../engine/queue-item.js';
import type { InFlightByFlow } from './in-flight.js';
import { capOf, type FlowCap } from './snapshot.js';
import { TopN } from './top-n.js';

/** One flow that has requests waiting or running. */
export interface FlowStanding {
  readonly fairnessId: string;
  readonly priority: number;
  readonly weight: number;
  readonly waiting: number;
  readonly waitingBytes: number;
  /** True while it is held back because no endpoint can take its first request. */
  readonly isHeld: boolean;
  /** True while it waits for the end of one of its own requests, because it is at its cap. */
  readonly isAtCap: boolean;
  /**
   * The wait of the request that has waited longest. It is exact in arrival order. In any other order, and where flows
   * share one queue, it is the longest among the requests that were looked at. Undefined when no request was looked at.
   */
  readonly oldestWaitMs: number | undefined;
  /** Leases not yet released. */
  readonly inFlight: number;
  readonly inFlightTokens: number;
  /** Its cap on what it runs at a time, Infinity = unlimited, and how much of that it runs; undefined without a cap. */
  readonly cap: FlowCap | undefined;
}

/** A waiting flow, and the oldest of its requests that was looked at. */
export interface Examined {
  readonly flow: Flow;
  readonly oldest: QueueItem | undefined;
}

/**
 * How many members are looked at: of a queue that several flows share, and of the queue of one flow that is not in
 * arrival order.
 */
const mostShared = 1_000;
const mostUnordered = 16;

/** Up to `most` waiting flows of a band, those that became active first first. */
export function* examineFlows(band: PriorityBand, most: number): Generator<Examined, void, undefined> {
  const shared = band.sharesQueue ? oldestByFlow(band) : undefined;
  let left = most;
  for (const flows of [band.activeFlows(), band.held.flows(), band.parked.flows()]) {
    for (const flow of flows) {
      if (left-- <= 0) return;
      yield { flow, oldest: shared === undefined ? oldestOf(flow, band) : shared.get(flow) };
    }
  }
}

function oldestOf({ queue }: Flow, { isInArrivalOrder }: PriorityBand): QueueItem | undefined {
  if (isInArrivalOrder) return queue?.peek() as QueueItem | undefined;
  let oldest: QueueItem | undefined;
  for (const item of (queue?.leading(mostUnordered) ?? []) as QueueItem[]) {
    if (oldest === undefined || item.waitingSinceMs < oldest.waitingSinceMs) oldest = item;
  }
  return oldest;
}

function oldestByFlow(band: PriorityBand): Map<Flow | undefined, QueueItem> {
  const oldest = new Map<Flow | undefined, QueueItem>();
  const queue = band.firstActive && band.queueOf(band.firstActive);
  for (const item of (queue?.leading(mostShared) ?? []) as QueueItem[]) {
    const known = oldest.get(item.flow);
    if (known === undefined || item.waitingSinceMs < known.waitingSinceMs) oldest.set(item.flow, item);
  }
  return oldest;
}

/**
 * Up to `count` flows: those that wait longest, and in a third of the places those that run most and are not among
 * them. Waiting flows come first, the longest wait first.
 */
export class FlowStandings {
  private readonly longest: TopN<Examined>;
  private readonly count: number;

  constructor(count: number) {
    this.count = count;
    this.longest = new TopN(count, (a, b) => sinceMs(a) - sinceMs(b) || b.flow.waiting - a.flow.waiting);
  }

  offer(examined: Examined): void {
    this.longest.offer(examined);
  }

  take({ backlog, parking: { caps } }: Engine, inFlight: InFlightByFlow, nowMs: number): FlowStanding[] {
    const { members } = this.longest;
    const waiting = merged(members, inFlight, caps, nowMs);
    const busiest = new TopN<FlowStanding>(this.count, (a, b) => b.inFlight - a.inFlight);
    const isListed = new Set(waiting.map(({ fairnessId, priority }) => `${priority} ${fairnessId}`));
    for (const flows of inFlight.values()) {
      for (const { fairnessId, priority, ...running } of flows.values()) {
        if (isListed.has(`${priority} ${fairnessId}`)) continue;
        const band = backlog.bands.get(priority);
        const flow = band?.flows.get(fairnessId);
        const cap = band && capOf(caps?.stateOf({ fairnessId }, band));
        const { weight = 1, waiting: own = 0, waitingBytes = 0 } = flow ?? {};
        const counts = {
          weight,
          waiting: own,
          waitingBytes,
          isHeld: flow?.heldIn !== undefined,
          isAtCap: flow?.parkedFor !== undefined,
        };
        busiest.offer({ fairnessId, priority, ...counts, oldestWaitMs: undefined, cap, ...running });
      }
    }
    const forBusiest = Math.max(this.count - waiting.length, Math.floor(this.count / 3));
    const others = busiest.members.slice(0, forBusiest);
    return [...waiting.slice(0, this.count - others.length), ...withOldest(others, backlog.bands, nowMs)];
  }
}

/** The same standings, with the oldest wait of those that have requests waiting. */
function withOldest(
  standings: readonly FlowStanding[],
  bands: Engine['backlog']['bands'],
  nowMs: number,
): FlowStanding[] {
  const shared = new Map<PriorityBand, ReturnType<typeof oldestByFlow>>();
  return standings.map((standing) => {
    const band = bands.get(standing.priority);
    const flow = band?.flows.get(standing.fairnessId);
    if (band === undefined || flow === undefined || flow.waiting === 0) return standing;
    if (band.sharesQueue && !shared.has(band)) shared.set(band, oldestByFlow(band));
    const oldest = band.sharesQueue ? shared.get(band)?.get(flow) : oldestOf(flow, band);
    return { ...standing, oldestWaitMs: oldest && nowMs - oldest.waitingSinceMs };
  });
}

function sinceMs({ oldest }: Examined): number {
  return oldest?.waitingSinceMs ?? Number.MAX_VALUE;
}

/** One standing for each fairness ID of a band: where requests queue by class, several flows have one name. */
function merged(
  examined: readonly Examined[],
  inFlight: InFlightByFlow,
  caps: Parking['caps'],
  nowMs: number,
): FlowStanding[] {
  const standings = new Map<string, FlowStanding>();
  for (const { flow, oldest } of examined) {
    const { fairnessId, priority, weight } = flow;
    const name = `${priority} ${fairnessId}`;
    if (standings.has(name)) continue; // the one that has waited longest stands for all
    const running = inFlight.get(priority)?.get(fairnessId);
    standings.set(name, {
      fairnessId,
      priority,
      weight,
      ...waitingOf(flow),
      isHeld: flow.heldIn !== undefined,
      isAtCap: flow.parkedFor !== undefined,
      oldestWaitMs: oldest && nowMs - oldest.waitingSinceMs,
      inFlight: running?.inFlight ?? 0,
      inFlightTokens: running?.inFlightTokens ?? 0,
      cap: capOf(caps?.stateOf(flow, flow.band)),
    });
  }
  return [...standings.values()];
}

/** O(1), and O(flows of the band) for a flow of one class. */
function waitingOf(flow: Flow): Pick<FlowStanding, 'waiting' | 'waitingBytes'> {
  const { name, fairnessId, waiting, waitingBytes } = flow;
  if (name === fairnessId) return { waiting, waitingBytes };
  const sum = { waiting: 0, waitingBytes: 0 };
  for (const other of flow.band.waitingFlows()) {
    if (other.fairnessId !== fairnessId) continue;
    sum.waiting += other.waiting;
    sum.waitingBytes += other.waitingBytes;
  }
  return sum;
}
