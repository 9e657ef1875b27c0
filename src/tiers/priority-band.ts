/**
 * One priority band: its flows, their queues, and the policies that say which request is next.
 *
 *     band ── selector (tier 2) ──► flow ── queue in the order of tier 3 ──► request
 *     band ── one queue ──► request                      when the fairness policy does not tell flows apart
 *
 * Invariant: the band's counts are the sums of its flows' counts; a flow is active or aside exactly while something of
 * it waits.
 */
import type { GroupTurn } from '../base/endpoint-turns.js';
import type { PluginErrorSink } from '../base/faults/plugin-errors.js';
import { FifoQueue } from '../base/queues/fifo-queue.js';
import type { ItemQueue } from '../base/queues/item-queue.js';
import { LinkedList } from '../base/queues/linked-list.js';
import type { PickedBand } from './2-fairness/guarded-selector.js';
import { BandPolicies, type PolicySettings } from './band-policies.js';
import { BandTraffic } from './band-traffic.js';
import type { WaitingItem } from './flow.js';
import { Flow, type InFlightCap } from './flow.js';
import { FlowsAside, type Reason } from './flows-aside.js';
import { LongestQueues } from './longest-queues.js';

/** Resolved numbers; Infinity = unlimited, or for ever. */
export interface BandSettings extends PolicySettings {
  readonly limits: { readonly maxRequests: number; readonly maxBytes: number };
  readonly flowLimits: { readonly maxRequests: number; readonly maxBytes: number };
  readonly requestTtlMs: number;
  /** The cap on what each flow runs at a time in this band. */
  readonly maxInFlightPerFlow: InFlightCap | undefined;
  /** Part of all dispatches guaranteed to the band while it waits. */
  readonly minShare: number;
  /** The groups of endpoints that it uses, one after the other; undefined: every endpoint. */
  readonly endpoints: readonly GroupTurn[] | undefined;
}

export class PriorityBand implements PickedBand {
  waiting = 0;
  waitingBytes = 0;
  waitingTokens = 0;
  /** The band dispatches while saturation is below it. Written by Ceilings. */
  ceiling = 1;
  /** Leases whose end the fairness policy hears of. Written by Seats. */
  trackedInFlight = 0;
  readonly traffic: BandTraffic;
  readonly flows: Map<string, Flow> = new Map();
  /** Flows with waiting requests that take turns, in the order in which they became active. */
  readonly active: LinkedList<Flow> = new LinkedList();
  readonly aside: FlowsAside;
  policies: BandPolicies;
  /** Undefined while each flow has a queue of its own. */
  sharedQueue: ItemQueue<WaitingItem> | undefined;
  /** Arrival order across flows; kept only while somebody asks for the oldest or the newest request. */
  arrivals: FifoQueue<WaitingItem> | undefined = undefined;
  /** Which flow has most waiting; kept only while a full queue drops by fair share. */
  longestQueues: LongestQueues<Flow, WaitingItem> | undefined = undefined;
  readonly priority: number;
  /** Configured bands are never collected. Written by BandRegistry. */
  isConfigured: boolean;
  settings: BandSettings;

  constructor(priority: number, isConfigured: boolean, settings: BandSettings, errors: PluginErrorSink, nowMs: number) {
    this.priority = priority;
    this.isConfigured = isConfigured;
    this.settings = settings;
    this.traffic = new BandTraffic(nowMs);
    this.aside = new FlowsAside(priority, (contenders) =>
      this.policies.ordersOf(contenders, this.settings.endpoints !== undefined),
    );
    this.policies = new BandPolicies(this, settings, errors);
    this.sharedQueue = this.policies.queueForAll();
  }

  get firstActive(): Flow | undefined {
    return this.active.first;
  }

  activeFlows(): Iterable<Flow> {
    return this.active;
  }

  isActiveFlow(candidate: unknown): candidate is Flow {
    if (!(candidate instanceof Flow) || candidate.band !== this) return false;
    return candidate.waiting > 0 && candidate.waitsFor === undefined;
  }

  /** Tells a new selector what waits. */
  tellOfWaiting(): void {
    const { policies } = this;
    policies.noteHooks();
    if (policies.selector === undefined) return;
    for (const flow of this.active) policies.selector.flowActivated(flow);
    for (const item of this.waitingItems()) policies.selector.itemAdded(item.flow as Flow, item);
  }

  /** The active flows, and those that are aside. */
  waitingFlows(): Flow[] {
    return [...this.active, ...this.aside.flows];
  }

  /** Requests that wait in active flows. */
  get ready(): number {
    const { held, parked } = this.aside.waiting;
    return this.waiting - held - parked;
  }

  /** Begins or ends to keep arrival order and the longest flow. Also after a change of settings. O(waiting · log). */
  track(arrivals: boolean, longestQueues: boolean): void {
    if (!arrivals) this.arrivals = undefined;
    else if (this.arrivals === undefined) {
      this.arrivals = new FifoQueue<WaitingItem>();
      for (const item of this.waitingItems()) this.arrivals.push(item);
    }
    this.longestQueues = undefined;
    if (!longestQueues) return;
    const isInOrder = this.sharedQueue === undefined && this.policies.ordering.isInArrivalOrder;
    this.longestQueues = new LongestQueues(isInOrder ? (flow) => flow.queue : undefined);
    for (const item of this.waitingItems()) this.longestQueues.added(item, item.flow as Flow);
  }

  /** `park`: the cap that its flow waits for, apart from its turn. */
  add(item: WaitingItem, flow: Flow, park?: Reason): void {
    if (this.arrivals !== undefined) this.arrivals.push(item);
    this.waiting++;
    this.waitingBytes += item.byteSize;
    this.waitingTokens += item.tokens;
    this.enter(item, flow);
    if (flow.contendsIn !== undefined) {
      flow.contendsIn.itemAdded(flow, item);
      this.review(flow);
    }
    if (park !== undefined && !flow.isParked) this.setAside(flow, park);
  }

  /** Hides an active flow from tier 2 until it is let in: parked by `park` (owed nothing), or for an endpoint. */
  setAside(flow: Flow, park?: Reason): void {
    if (park !== undefined) this.aside.leave(flow);
    this.deactivate(flow, park !== undefined);
    this.aside.add(flow, park ?? this.aside.contend(flow));
  }

  /** Lets a flow that is aside take turns again. */
  letIn(flow: Flow): void {
    this.aside.remove(flow);
    this.activate(flow);
  }

  /** The request that goes next, by tiers 2 and 3; undefined when nothing waits. Follow it with `take` or `discard`. */
  next(nowMs: number): WaitingItem | undefined {
    if (this.sharedQueue !== undefined) return this.sharedQueue.peek();
    if (this.waiting === 0) return undefined;
    // Where the policy fails, the flow goes that is active longest.
    const flow = (this.policies.selector?.pick(nowMs) as Flow | undefined) ?? this.active.rotate();
    return flow?.queue?.peek();
  }

  /** Removes the request that `next` returned, for its dispatch. */
  take(item: WaitingItem, nowMs: number): void {
    const flow = item.flow as Flow;
    const { selector } = this.policies;
    (this.sharedQueue ?? flow.queue)?.shift();
    this.leave(item, flow, nowMs);
    if (flow.contendsIn !== undefined) {
      flow.contendsIn.dispatched(flow, item, nowMs);
      this.review(flow);
    }
    if (selector !== undefined) selector.dispatched(flow, item, nowMs);
  }

  /** Removes a waiting request without a dispatch, wherever it stands; its `isWaiting` must be false by now. */
  discard(item: WaitingItem, nowMs: number): void {
    const flow = item.flow as Flow;
    const { selector } = this.policies;
    (this.sharedQueue ?? flow.queue)?.discard();
    this.leave(item, flow, nowMs);
    if (selector !== undefined) selector.itemRemoved(flow, item);
    if (flow.contendsIn === undefined) return;
    flow.contendsIn.itemRemoved(flow, item);
    this.review(flow);
  }

  /** All waiting requests, oldest first. */
  waitingItems(): WaitingItem[] {
    return this.members().sort((a, b) => a.sequence - b.sequence);
  }

  /** All waiting requests, in no particular order. */
  members(): WaitingItem[] {
    return this.sharedQueue?.members() ?? this.waitingFlows().flatMap((flow) => flow.queue?.members() ?? []);
  }

  /** Takes new settings; when a policy changed, every waiting request is lined up anew. O(waiting · log) then. */
  configure(settings: BandSettings): void {
    for (const flow of this.aside.of('held')) this.letIn(flow);
    this.aside.clear();
    this.settings = settings;
    const before = this.policies;
    this.policies = before.following(this, settings);
    if (this.policies === before) return;
    const items = this.waitingItems();
    this.sharedQueue = this.policies.queueForAll();
    for (const flow of this.flows.values()) flow.queue = this.policies.queueForFlow();
    for (const item of items) (this.sharedQueue ?? item.flow?.queue)?.push(item);
    if (this.policies.selector !== before.selector) this.tellOfWaiting();
  }

  /** Files every waiting request under another flow; `emptied` hears of each flow first. O(waiting · log). */
  rebuildQueues(flowOf: (item: WaitingItem) => Flow, emptied: (flow: Flow) => void): void {
    const items = this.waitingItems();
    const before = [...this.active];
    const { policies } = this;
    for (const flow of before) {
      this.deactivate(flow);
      flow.waiting = 0;
      flow.waitingBytes = 0;
      flow.queue = policies.queueForFlow();
    }
    for (const item of items) if (item.flow !== undefined) policies.selector?.itemRemoved(item.flow, item);
    for (const flow of before) emptied(flow);
    const isLongestTracked = this.longestQueues !== undefined;
    this.longestQueues = undefined;
    this.sharedQueue = policies.queueForAll();
    for (const item of items) this.enter(item, flowOf(item));
    this.track(this.arrivals !== undefined, isLongestTracked);
  }

  private enter(item: WaitingItem, flow: Flow): void {
    item.flow = flow;
    (this.sharedQueue ?? flow.queue)?.push(item);
    flow.waiting++;
    flow.waitingBytes += item.byteSize;
    if (flow.waiting === 1) this.activate(flow);
    else if (flow.waitsFor !== undefined) this.aside.itemAdded(flow.waitsFor);
    if (this.longestQueues !== undefined) this.longestQueues.added(item, flow);
    const { selector } = this.policies;
    if (selector?.hearsItems === true) selector.itemAdded(flow, item);
  }

  private leave(item: WaitingItem, flow: Flow, nowMs: number): void {
    if (this.arrivals !== undefined) this.arrivals.discard();
    this.traffic.leftAtMs = nowMs;
    this.waiting--;
    this.waitingBytes -= item.byteSize;
    this.waitingTokens -= item.tokens;
    flow.waiting--;
    flow.waitingBytes -= item.byteSize;
    if (this.longestQueues !== undefined) this.longestQueues.left(flow);
    if (flow.waitsFor !== undefined) this.aside.itemLeft(flow, flow.waitsFor);
    else if (flow.waiting === 0) this.deactivate(flow);
  }

  private activate(flow: Flow): void {
    this.active.push(flow);
    const { selector } = this.policies;
    if (selector !== undefined) selector.flowActivated(flow);
  }

  private deactivate(flow: Flow, isParked = false): void {
    this.active.remove(flow);
    const { selector } = this.policies;
    if (selector !== undefined) selector.flowDeactivated(flow, isParked);
  }

  /** A request of a flow that contends in a class came or went: it contends on as long as its first one is of it. */
  private review(flow: Flow): void {
    if (flow.waiting > 0 && flow.head?.requestClass === flow.contendsIn?.requestClass) return;
    if (flow.isHeld) this.letIn(flow);
    this.aside.leave(flow);
  }
}
