/**
 * One priority band: its flows, their queues, and the policies that say which request is next. Larger than most files,
 * because every way in and out keeps the same counts.
 *
 *     band ── selector (tier 2) ──► flow ── queue in the order of tier 3 ──► request
 *     band ── one queue ──► request                      when the fairness policy does not tell flows apart
 *
 * Invariant: the band's counts are the sums of its flows' counts; a flow is active, held back or parked exactly while
 * something of it waits.
 */

import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { FifoQueue } from '../base/queues/fifo-queue.js';
import type { ItemQueue } from '../base/queues/item-queue.js';
import { LinkedList } from '../base/queues/linked-list.js';
import { earliestHead } from './2-fairness/earliest-head.js';
import type { FairnessPolicy } from './2-fairness/fairness-policy.js';
import { GuardedSelector, type PickedBand } from './2-fairness/guarded-selector.js';
import { roundRobin } from './2-fairness/round-robin.js';
import { GuardedOrdering } from './3-ordering/guarded-ordering.js';
import type { OrderingPolicy } from './3-ordering/ordering-policy.js';
import { EventRate } from './event-rate.js';
import { Flow, type InFlightCap } from './flow.js';
import { HeldFlows } from './held-flows.js';
import { LongestQueues } from './longest-queues.js';
import { type Park, ParkedFlows } from './parked-flows.js';
import type { WaitingItem } from './waiting-item.js';

/** Resolved numbers; Infinity = unlimited, or for ever. */
export interface BandSettings {
  readonly limits: { readonly maxRequests: number; readonly maxBytes: number };
  readonly flowLimits: { readonly maxRequests: number; readonly maxBytes: number };
  readonly requestTtlMs: number;
  readonly fairness: FairnessPolicy;
  readonly ordering: OrderingPolicy;
  /** True when single flows may be held back, so that each needs a queue of its own. */
  readonly holdsFlows: boolean;
  /** True when single flows may be parked, so that each needs a queue of its own. */
  readonly parksFlows: boolean;
  /** The cap on what each flow runs at a time in this band. */
  readonly maxInFlightPerFlow: InFlightCap | undefined;
  /** Part of all dispatches guaranteed to the band while it waits. */
  readonly minShare: number;
}

export class PriorityBand implements PickedBand {
  waiting = 0;
  waitingBytes = 0;
  waitingTokens = 0;
  /** The band dispatches while saturation is below it. Written by Ceilings. */
  ceiling = 1;
  /** The instant at which a request last came. Written by BandRegistry. */
  arrivedAtMs: number;
  /** The instant at which a waiting request last left. */
  private leftAtMs: number;
  /** Leases whose end the fairness policy hears of. Written by Seats. */
  trackedInFlight = 0;
  readonly flows: Map<string, Flow> = new Map();
  /** Requests that were handed in, whatever became of them. Written by BandRegistry. */
  arrived = 0;
  /** Requests that were dispatched. Written by Seats. */
  dispatched = 0;
  /** True when the fairness policy hears of dispatches, also of requests that never waited. */
  hearsDispatches = false;
  /** True when the fairness policy hears of the end of requests, so that leases remember their flow. */
  hearsSettlements = false;
  private readonly arrivalRate: EventRate;
  private readonly dispatchRate: EventRate;
  /** Arrival order across flows; kept only while somebody asks for the oldest or the newest request. */
  private arrivals: FifoQueue<WaitingItem> | undefined = undefined;
  /** Which flow has most waiting; kept only while a full queue drops by fair share. */
  longestQueues: LongestQueues<Flow, WaitingItem> | undefined = undefined;
  private readonly active = new LinkedList<Flow>();
  readonly held: HeldFlows;
  readonly parked: ParkedFlows = new ParkedFlows();
  /** The fairness policy; undefined where one queue serves all flows. */
  selector: GuardedSelector | undefined;
  /** The ordering policy. */
  ordering: GuardedOrdering;
  /** Reports that the fairness policies before this one ignored. */
  private ignoredBefore = 0;
  private sharedQueue: ItemQueue<WaitingItem> | undefined;
  readonly priority: number;
  /** Configured bands are never collected. Written by BandRegistry. */
  isConfigured: boolean;
  settings: BandSettings;
  private readonly errors: PluginErrorSink;
  constructor(priority: number, isConfigured: boolean, settings: BandSettings, errors: PluginErrorSink, nowMs: number) {
    this.priority = priority;
    this.isConfigured = isConfigured;
    this.settings = settings;
    this.errors = errors;
    this.held = new HeldFlows(priority, (contenders) => this.orderOf(contenders));
    this.ordering = new GuardedOrdering(settings.ordering, errors);
    this.arrivedAtMs = nowMs;
    this.leftAtMs = nowMs;
    this.arrivalRate = new EventRate(nowMs);
    this.dispatchRate = new EventRate(nowMs);
    this.selector = this.makeSelector();
    this.noteHooks();
    this.sharedQueue = this.selector === undefined ? this.ordering.makeQueue() : undefined;
  }

  /** The instant at which a request last came or left; it decides when an idle band is collected. */
  get lastUsedMs(): number {
    return Math.max(this.arrivedAtMs, this.leftAtMs);
  }

  get firstActive(): Flow | undefined {
    return this.active.first;
  }

  isActiveFlow(candidate: unknown): candidate is Flow {
    if (!(candidate instanceof Flow) || candidate.band !== this || candidate.waiting === 0) return false;
    return !candidate.isHeld && candidate.parkedFor === undefined;
  }

  activeFlows(): Iterable<Flow> {
    return this.active;
  }

  /** The active flows, the held ones and the parked ones. */
  waitingFlows(): Flow[] {
    return [...this.active, ...this.held.flows(), ...this.parked.flows()];
  }

  /** Requests that wait in flows that are neither held back nor parked. */
  get ready(): number {
    return this.waiting - this.held.waiting - this.parked.waiting;
  }

  /** Undefined when nothing was measured. */
  arrivedPerSecond(nowMs: number): number | undefined {
    return this.arrivalRate.perSecond(this.arrived, nowMs);
  }

  /** Undefined when nothing was measured. */
  dispatchedPerSecond(nowMs: number): number | undefined {
    return this.dispatchRate.perSecond(this.dispatched, nowMs);
  }

  /** Call it about once a second. */
  sampleRates(nowMs: number): void {
    this.arrivalRate.sample(this.arrived, nowMs);
    this.dispatchRate.sample(this.dispatched, nowMs);
  }

  /** A queue for a new flow; undefined while one queue serves all. */
  queueForFlow(): ItemQueue<WaitingItem> | undefined {
    return this.selector === undefined ? undefined : this.ordering.makeQueue();
  }

  /** The request that has waited longest, and the one that came last; undefined unless arrivals are tracked. */
  get oldest(): WaitingItem | undefined {
    return this.arrivals?.peek();
  }

  get newest(): WaitingItem | undefined {
    return this.arrivals?.last();
  }

  trackArrivals(isTracked: boolean): void {
    if (!isTracked) {
      this.arrivals = undefined;
      return;
    }
    if (this.arrivals !== undefined) return;
    this.arrivals = new FifoQueue<WaitingItem>();
    for (const item of this.waitingItems()) this.arrivals.push(item);
  }

  /** Begins or ends to track which flow has most waiting. Call it also after a change of settings. O(waiting · log). */
  trackLongestQueues(isTracked: boolean): void {
    this.longestQueues = undefined;
    if (!isTracked) return;
    const isInOrder = this.sharedQueue === undefined && this.ordering.isInArrivalOrder;
    this.longestQueues = new LongestQueues(isInOrder ? (flow) => flow.queue : undefined);
    for (const item of this.waitingItems()) this.longestQueues.added(item, item.flow as Flow);
  }

  /** `park`: what its flow waits for, apart from its turn. */
  add(item: WaitingItem, flow: Flow, park?: Park): void {
    if (this.arrivals !== undefined) this.arrivals.push(item);
    this.waiting++;
    this.waitingBytes += item.byteSize;
    this.waitingTokens += item.tokens;
    this.enter(item, flow);
    if (flow.contendsIn !== undefined) {
      flow.contendsIn.itemAdded(flow, item);
      this.review(flow);
    }
    if (park !== undefined && flow.parkedFor === undefined) this.park(flow, park);
  }

  /**
   * Holds the flow back, because no endpoint can take its first request: until there is room, tier 2 does not see it.
   */
  hold(flow: Flow): void {
    this.deactivate(flow);
    this.held.hold(flow);
  }

  /** Lets a held flow out, so that tier 2 sees it. */
  letOut(flow: Flow): void {
    this.held.release(flow);
    this.activate(flow);
  }

  /** Parks an active flow: until `unpark`, tier 2 does not see it, and it is owed nothing meanwhile. */
  park(flow: Flow, park: Park): void {
    this.held.leave(flow);
    this.active.remove(flow);
    if (this.selector !== undefined) this.selector.flowDeactivated(flow, true);
    this.parked.park(flow, park);
  }

  unpark(flow: Flow): void {
    this.parked.unpark(flow);
    this.activate(flow);
  }

  /**
   * The request that goes next, chosen by tiers 2 and 3; undefined when nothing waits. Follow it with `take` or
   * `discard`.
   */
  next(nowMs: number): WaitingItem | undefined {
    if (this.sharedQueue !== undefined) return this.sharedQueue.peek();
    if (this.waiting === 0) return undefined;
    return ((this.selector?.pick(nowMs) as Flow | undefined) ?? this.longestActive())?.queue?.peek();
  }

  /** Removes the request that `next` returned, for its dispatch. */
  take(item: WaitingItem, nowMs: number): void {
    const flow = item.flow as Flow;
    (this.sharedQueue ?? flow.queue)?.shift();
    this.leave(item, flow, nowMs);
    if (flow.contendsIn !== undefined) {
      flow.contendsIn.dispatched(flow, item, nowMs);
      this.review(flow);
    }
    if (this.selector !== undefined) this.selector.dispatched(flow, item, nowMs);
  }

  /** Removes a waiting request without a dispatch, wherever it stands; its `isWaiting` must be false by now. */
  discard(item: WaitingItem, nowMs: number): void {
    const flow = item.flow as Flow;
    (this.sharedQueue ?? flow.queue)?.discard();
    this.leave(item, flow, nowMs);
    if (this.selector !== undefined) this.selector.itemRemoved(flow, item);
    if (flow.contendsIn === undefined) return;
    flow.contendsIn.itemRemoved(flow, item);
    this.review(flow);
  }

  /** Reports of usage that the fairness policy, and those before it, ignored. */
  get ignoredReports(): number {
    return this.ignoredBefore + (this.selector?.ignoredReports ?? 0);
  }

  /** Removes a flow that is collected. */
  removeFlow(flow: Flow): void {
    this.flows.delete(flow.name);
    this.selector?.flowRemoved(flow);
  }

  /** All waiting requests, oldest first. */
  waitingItems(): WaitingItem[] {
    return this.members().sort((a, b) => a.sequence - b.sequence);
  }

  /** All waiting requests, in no particular order. */
  members(): WaitingItem[] {
    return this.sharedQueue?.members() ?? this.waitingFlows().flatMap((flow) => flow.queue?.members() ?? []);
  }

  /** True while one queue serves all flows. */
  get sharesQueue(): boolean {
    return this.sharedQueue !== undefined;
  }

  /** Flows with waiting requests, those that are held back left out. */
  get activeCount(): number {
    return this.active.size;
  }

  /** The queue that a flow's requests stand in. */
  queueOf(flow: Flow): ItemQueue<WaitingItem> | undefined {
    return this.sharedQueue ?? flow.queue;
  }

  /** Takes new settings; when a policy changed, every waiting request is lined up anew. O(waiting · log) then. */
  configure(settings: BandSettings): void {
    const { fairness, ordering } = this.settings;
    const hadQueues = queuesApart(this.settings);
    for (const flow of [...this.held.flows()]) this.letOut(flow);
    this.held.clear();
    this.settings = settings;
    if (settings.fairness === fairness && settings.ordering === ordering && queuesApart(settings) === hadQueues) return;
    const items = this.waitingItems();
    this.ordering = new GuardedOrdering(settings.ordering, this.errors);
    const isLinedUpAnew = settings.fairness !== fairness || 'sharedQueue' in fairness;
    if (isLinedUpAnew) {
      this.ignoredBefore = this.ignoredReports;
      this.selector = this.makeSelector();
    }
    this.noteHooks();
    this.sharedQueue = this.selector === undefined ? this.ordering.makeQueue() : undefined;
    for (const flow of this.flows.values()) flow.queue = this.queueForFlow();
    for (const item of items) (this.sharedQueue ?? item.flow?.queue)?.push(item);
    if (isLinedUpAnew) this.tellOfWaiting();
  }

  /** Tells a new selector what waits. */
  tellOfWaiting(): void {
    this.noteHooks();
    if (this.selector === undefined) return;
    for (const flow of this.active) this.selector.flowActivated(flow);
    for (const item of this.waitingItems()) this.selector.itemAdded(item.flow as Flow, item);
  }

  /**
   * Files every waiting request under another flow, while nothing is held back or parked. `emptied` hears of every flow
   * before the first is filled. O(waiting · log).
   */
  rebuildQueues(flowOf: (item: WaitingItem) => Flow, emptied: (flow: Flow) => void): void {
    const items = this.waitingItems();
    const before = [...this.active];
    for (const flow of before) {
      this.deactivate(flow);
      flow.waiting = 0;
      flow.waitingBytes = 0;
      flow.queue = this.queueForFlow();
    }
    for (const item of items) if (item.flow !== undefined) this.selector?.itemRemoved(item.flow, item);
    for (const flow of before) emptied(flow);
    const isLongestTracked = this.longestQueues !== undefined;
    this.longestQueues = undefined;
    if (this.sharedQueue !== undefined) this.sharedQueue = this.ordering.makeQueue();
    for (const item of items) this.enter(item, flowOf(item));
    if (isLongestTracked) this.trackLongestQueues(true);
  }

  private enter(item: WaitingItem, flow: Flow): void {
    item.flow = flow;
    (this.sharedQueue ?? flow.queue)?.push(item);
    flow.waiting++;
    flow.waitingBytes += item.byteSize;
    if (flow.waiting === 1) this.activate(flow);
    else if (flow.isHeld) this.held.added();
    else if (flow.parkedFor !== undefined) this.parked.added();
    if (this.longestQueues !== undefined) this.longestQueues.added(item, flow);
    if (this.selector?.hearsItems === true) this.selector.itemAdded(flow, item);
  }

  private leave(item: WaitingItem, flow: Flow, nowMs: number): void {
    if (this.arrivals !== undefined) this.arrivals.discard();
    this.leftAtMs = nowMs;
    this.waiting--;
    this.waitingBytes -= item.byteSize;
    this.waitingTokens -= item.tokens;
    flow.waiting--;
    flow.waitingBytes -= item.byteSize;
    if (this.longestQueues !== undefined) this.longestQueues.left(flow);
    if (flow.isHeld) this.held.left();
    else if (flow.parkedFor !== undefined) this.parked.left();
    if (flow.waiting > 0) return;
    if (flow.isHeld) this.held.release(flow);
    else if (flow.parkedFor !== undefined) this.parked.unpark(flow);
    else this.deactivate(flow);
  }

  private activate(flow: Flow): void {
    this.active.push(flow);
    if (this.selector !== undefined) this.selector.flowActivated(flow);
  }

  private deactivate(flow: Flow): void {
    this.active.remove(flow);
    if (this.selector !== undefined) this.selector.flowDeactivated(flow);
  }

  /** A request of a flow that contends in a class came or went: it contends on as long as its first one is of it. */
  private review(flow: Flow): void {
    if (flow.waiting > 0 && flow.head?.requestClass === flow.contendsIn?.requestClass) return;
    if (flow.isHeld) this.letOut(flow);
    this.held.leave(flow);
  }

  /** The fallback for a failing policy: the flow that is active longest, which then goes to the end. */
  private longestActive(): Flow | undefined {
    const flow = this.active.first;
    if (flow !== undefined) {
      this.active.remove(flow);
      this.active.push(flow);
    }
    return flow;
  }

  /** Undefined where one queue serves all flows. */
  private makeSelector(): GuardedSelector | undefined {
    const { fairness } = this.settings;
    const policy =
      'sharedQueue' in fairness
        ? queuesApart(this.settings)
          ? earliestHead(fairness.type, this.ordering.compare)
          : undefined
        : fairness;
    return policy && new GuardedSelector(policy, this, this.errors);
  }

  /** Finds out once what leases must remember for its policies. */
  private noteHooks(): void {
    this.hearsSettlements = this.ordering.hearsFirstTokens || this.selector?.hearsSettlements === true;
    this.hearsDispatches = this.hearsSettlements || this.selector?.hearsDispatches === true;
  }

  /** The order of flows of which some are held: that of tier 2 where it has one, otherwise they take turns. */
  private orderOf(contenders: PickedBand): GuardedSelector {
    return this.selector?.forHeld(contenders) ?? new GuardedSelector(roundRobin(), contenders, this.errors);
  }
}

function queuesApart({ holdsFlows, parksFlows }: BandSettings): boolean {
  return holdsFlows || parksFlows;
}
