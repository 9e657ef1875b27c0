/** What waits and runs of flows, and since when: who starves, who takes its place. Bounded, however many wait. */
import type { ItemQueue } from '../../base/queues/item-queue.js';
import type { Flow, InFlightCap, WaitingItem } from '../../tiers/flow.js';
import type { PriorityBand } from '../../tiers/priority-band.js';
import type { WaitingFigures } from '../engine/capacity-limits.js';
import type { Engine } from '../engine/engine.js';
import type { CapState } from '../engine/in-flight-caps.js';
import type { QueueItem } from '../engine/queue-item.js';
import { sumByFairnessId } from './figures.js';
import type { FlowInFlight, InFlightByFlow } from './in-flight.js';
import { TopN } from './top-n.js';

export interface FlowCap extends InFlightCap {
  readonly requests: number;
  readonly tokens: number;
}

/** One flow that has requests waiting or running. */
export interface FlowStanding extends WaitingFigures, FlowInFlight {
  readonly weight: number;
  /** True while it is held back because no endpoint can take its first request. */
  readonly isHeld: boolean;
  /** True while it waits for the end of one of its own requests, because it is at its cap. */
  readonly isAtCap: boolean;
  /** The longest wait, exact in arrival order; otherwise, and in shared queues, of the requests that were looked at. */
  readonly oldestWaitMs: number | undefined;
  /** Its cap on what it runs at a time, Infinity = unlimited, and how much of that it runs; undefined without a cap. */
  readonly cap: FlowCap | undefined;
}

/** A waiting flow, and the oldest of its requests that was looked at. */
export interface Examined {
  readonly flow: Flow;
  readonly oldest: QueueItem | undefined;
}

/** How many members of a queue are looked at. */
export interface Depth {
  /** To find the place of a request. */
  readonly place: number;
  /** Of a queue that several flows share. */
  readonly shared: number;
  /** Of the queue of one flow that is not in arrival order. */
  readonly unordered: number;
}

/** Up to `most` waiting flows of a band, those that became active first first. */
export function* examineFlows(band: PriorityBand, most: number, depth: Depth): Generator<Examined, void, undefined> {
  const oldestOf = oldestIn(band, depth);
  let left = most;
  for (const flows of [band.active, band.aside.flows]) {
    for (const flow of flows) {
      if (left-- <= 0) return;
      yield { flow, oldest: oldestOf(flow) };
    }
  }
}

type OldestOf = (flow: Flow) => QueueItem | undefined;

/** Finds the oldest request of a flow; a queue that flows share is looked at once for all of them. */
function oldestIn(band: PriorityBand, depth: Depth): OldestOf {
  if (band.sharedQueue !== undefined) {
    const shared = oldestByFlow(band.sharedQueue, depth.shared);
    return (flow) => shared.get(flow);
  }
  if (band.policies.ordering.isInArrivalOrder) return ({ queue }) => queue?.peek() as QueueItem | undefined;
  return (flow) => oldestByFlow(flow.queue, depth.unordered).get(flow);
}

function oldestByFlow(queue: ItemQueue<WaitingItem> | undefined, most: number): Map<unknown, QueueItem> {
  const oldest = new Map<unknown, QueueItem>();
  for (const item of (queue?.leading(most) ?? []) as QueueItem[]) {
    const known = oldest.get(item.flow);
    if (known === undefined || item.waitingSinceMs < known.waitingSinceMs) oldest.set(item.flow, item);
  }
  return oldest;
}

export interface Standings {
  offer(examined: Examined): void;
  of(examined: Examined): FlowStanding;
  /** Up to `count` flows: first those that wait longest, and in a third of the places those that run most. */
  take(): FlowStanding[];
}

export function standings(
  { backlog: { bands }, parking }: Engine,
  inFlightByFlow: InFlightByFlow,
  count: number,
  depth: Depth,
  nowMs: number,
): Standings {
  const longest = new TopN<Examined>(count, (a, b) => sinceMs(a) - sinceMs(b) || b.flow.waiting - a.flow.waiting);

  function standing(flow: Pick<Flow, 'fairnessId'> & Partial<Flow>, priority: number, oldest: QueueItem | undefined) {
    const { fairnessId, weight = 1, waiting = 0, waitingBytes = 0 } = flow;
    const { inFlight = 0, inFlightTokens = 0 } = inFlightByFlow.get(priority)?.get(fairnessId) ?? {};
    const band = bands.get(priority);
    return {
      fairnessId,
      priority,
      weight,
      waiting,
      waitingBytes,
      isHeld: flow.isHeld === true,
      isAtCap: flow.isParked === true,
      oldestWaitMs: oldest && nowMs - oldest.waitingSinceMs,
      inFlight,
      inFlightTokens,
      cap: band && capOf(parking.caps?.stateOf(flow, band)),
    };
  }

  function of({ flow, oldest }: Examined): FlowStanding {
    return standing(flow, flow.priority, oldest);
  }

  /** One for each fairness ID of a band: where requests queue by class, several flows have one name. */
  function merged(): FlowStanding[] {
    const byName = new Map<string, FlowStanding>();
    for (const examined of longest.members) {
      const name = nameOf(examined.flow);
      // The one that has waited longest stands for all.
      if (!byName.has(name)) byName.set(name, { ...of(examined), ...waitingOf(examined.flow) });
    }
    return [...byName.values()];
  }

  function running(flows: readonly FlowInFlight[]): FlowStanding[] {
    const oldest = new Map<PriorityBand, OldestOf>();
    return flows.map(({ fairnessId, priority }) => {
      const flow = bands.get(priority)?.flows.get(fairnessId);
      if (flow === undefined || flow.waiting === 0) return standing(flow ?? { fairnessId }, priority, undefined);
      const oldestOf = oldest.get(flow.band) ?? oldestIn(flow.band, depth);
      oldest.set(flow.band, oldestOf);
      return standing(flow, priority, oldestOf(flow));
    });
  }

  function take(): FlowStanding[] {
    const waiting = merged();
    const isListed = new Set(waiting.map(nameOf));
    const busiest = new TopN<FlowInFlight>(count, (a, b) => b.inFlight - a.inFlight);
    for (const flows of inFlightByFlow.values())
      for (const running of flows.values()) if (!isListed.has(nameOf(running))) busiest.offer(running);
    const forBusiest = Math.max(count - waiting.length, Math.floor(count / 3));
    const others = busiest.members.slice(0, forBusiest);
    return [...waiting.slice(0, count - others.length), ...running(others)];
  }

  return { offer: (examined) => longest.offer(examined), of, take };
}

function capOf(state: CapState | undefined): FlowCap | undefined {
  return state && { ...state.cap, requests: state.account?.requests ?? 0, tokens: state.account?.tokens ?? 0 };
}

function nameOf({ priority, fairnessId }: { readonly priority: number; readonly fairnessId: string }): string {
  return `${priority} ${fairnessId}`;
}

function sinceMs({ oldest }: Examined): number {
  return oldest?.waitingSinceMs ?? Number.MAX_VALUE;
}

/** O(1), and O(flows of the band) for a flow of one class. */
function waitingOf(flow: Flow): WaitingFigures {
  const { name, fairnessId, waiting, waitingBytes } = flow;
  return (name === fairnessId ? undefined : sumByFairnessId(flow.band).get(fairnessId)) ?? { waiting, waitingBytes };
}
