/**
 * Flows of one band that are set aside, so that others pass: each waits for something beside its turn.
 *
 *     active ── add ──► aside ── remove ──► active        tier 2 does not see a flow that is aside
 *        held:    its first request waits for room in its class alone
 *        parked:  it is at a cap of its own, and waits for the end of what it runs
 *
 *     class 'model=a':  contenders ── order ──► the one that tier 2 lets go first
 *                        │ held ◄──────┐        held: it is let in as soon as the class has room for it
 *                        └ let in ─────┘        let in: it is among the active flows, and is held again if it finds no room
 *
 * Invariant: a flow that is aside is not among the active flows; it stands in `flows` of its reason; `waiting` is the
 * sum over the flows aside. A flow contends in one class at most, from the moment that it is held until nothing of it
 * waits, its first request is of another class, or it is parked. A class lives while flows contend in it.
 */
import { put } from '../base/put.js';
import { LinkedList } from '../base/queues/linked-list.js';
import { sum } from '../base/sum.js';
import type { PickedBand } from './2-fairness/guarded-selector.js';
import type { BandPolicies } from './band-policies.js';
import type { WaitingItem } from './flow.js';
import { Flow } from './flow.js';

/** What a flow waits for beside its turn. */
export interface Reason {
  readonly kind: 'held' | 'parked';
  /** The flows that wait for it: owned by FlowsAside. */
  readonly flows: Set<Flow>;
}

/** Makes the orders of the flows of one class. */
type MakeOrders = (contenders: PickedBand) => Orders;
type Orders = ReturnType<BandPolicies['ordersOf']>;

/** Room for requests of one class. The flows that contend for it are a band to the selector that orders them. */
export class HeldClass implements PickedBand, Reason {
  readonly kind = 'held';
  /** The held ones of the contenders. */
  readonly flows: Set<Flow> = new Set();
  readonly contenders: Set<Flow> = new Set();
  readonly requestClass: string | undefined;
  readonly priority: number;
  private orders: Orders = [];
  private readonly makeOrders: MakeOrders;

  constructor(requestClass: string | undefined, priority: number, makeOrders: MakeOrders) {
    this.requestClass = requestClass;
    this.priority = priority;
    this.makeOrders = makeOrders;
  }

  get waiting(): number {
    return sum(this.contenders, ({ waiting }) => waiting);
  }

  get waitingBytes(): number {
    return sum(this.contenders, ({ waitingBytes }) => waitingBytes);
  }

  get firstActive(): Flow | undefined {
    return this.contenders.values().next().value;
  }

  activeFlows(): Iterable<Flow> {
    return this.contenders;
  }

  isActiveFlow(candidate: unknown): candidate is Flow {
    return candidate instanceof Flow && candidate.contendsIn === this;
  }

  tellOfWaiting(): void {
    for (const order of this.orders) for (const flow of this.contenders) order.flowActivated(flow);
  }

  /** The contender whose first request goes before those of the others, by each order; it may be let in already. */
  *firsts(nowMs: number): Generator<Flow, void> {
    const [oldestHeld] = this.flows;
    for (const order of this.orders) {
      const first = order.pick(nowMs) ?? oldestHeld;
      if (this.isActiveFlow(first)) yield first;
    }
    if (this.orders.length === 0 && oldestHeld !== undefined) yield oldestHeld;
  }

  join(flow: Flow): void {
    this.contenders.add(flow);
    // One flow needs no order: with sessions, most classes have one.
    if (this.contenders.size === 1) return;
    if (this.orders.length > 0) for (const order of this.orders) order.flowActivated(flow);
    else {
      this.orders = this.makeOrders(this);
      this.tellOfWaiting();
    }
  }

  leave(flow: Flow): void {
    this.contenders.delete(flow);
    for (const order of this.orders) {
      if (flow.waiting > 0) order.flowDeactivated(flow, true);
      order.flowRemoved(flow);
    }
  }

  itemAdded(flow: Flow, item: WaitingItem): void {
    for (const order of this.orders) order.itemAdded(flow, item);
  }

  itemRemoved(flow: Flow, item: WaitingItem): void {
    this.emptied(flow);
    for (const order of this.orders) order.itemRemoved(flow, item);
  }

  dispatched(flow: Flow, item: WaitingItem, nowMs: number): void {
    this.emptied(flow);
    for (const order of this.orders) order.dispatched(flow, item, nowMs);
  }

  private emptied(flow: Flow): void {
    if (flow.waiting === 0) for (const order of this.orders) order.flowDeactivated(flow);
  }
}

export class FlowsAside {
  /** Requests that wait in these flows, by what the flows wait for. */
  readonly waiting: Record<Reason['kind'], number> = { held: 0, parked: 0 };
  /** In the order in which they were set aside. */
  readonly flows: LinkedList<Flow> = new LinkedList();
  private readonly classes = new Map<string | undefined, HeldClass>();
  private readonly priority: number;
  private readonly makeOrders: MakeOrders;

  constructor(priority: number, makeOrders: MakeOrders) {
    this.priority = priority;
    this.makeOrders = makeOrders;
  }

  /** Those that wait for something of that kind. O(flows). */
  of(kind: Reason['kind']): Flow[] {
    return [...this.flows].filter(({ waitsFor }) => waitsFor?.kind === kind);
  }

  /** Every class in which a flow is held, or was lately. */
  heldClasses(): readonly HeldClass[] {
    return [...this.classes.values()];
  }

  /** Adds a flow that is among the active ones no longer. */
  add(flow: Flow, reason: Reason): void {
    this.flows.push(flow);
    reason.flows.add(flow);
    flow.waitsFor = reason;
    this.waiting[reason.kind] += flow.waiting;
  }

  /** One more request waits in a flow that is aside. */
  itemAdded({ kind }: Reason): void {
    this.waiting[kind]++;
  }

  /** One request less waits in a flow that is aside; with its last one, the flow leaves. */
  itemLeft(flow: Flow, { kind }: Reason): void {
    this.waiting[kind]--;
    if (flow.waiting === 0) this.remove(flow);
  }

  /** A held flow contends on. */
  remove(flow: Flow): void {
    const { waitsFor } = flow;
    if (waitsFor === undefined) return;
    this.flows.remove(flow);
    waitsFor.flows.delete(flow);
    flow.waitsFor = undefined;
    this.waiting[waitsFor.kind] -= flow.waiting;
  }

  /** The class of the flow's first request, in which it contends from now on. */
  contend(flow: Flow): HeldClass {
    const requestClass = flow.head?.requestClass;
    if (flow.contendsIn?.requestClass !== requestClass) this.leave(flow);
    if (flow.contendsIn !== undefined) return flow.contendsIn;
    const held =
      this.classes.get(requestClass) ??
      put(this.classes, requestClass, new HeldClass(requestClass, this.priority, this.makeOrders));
    flow.contendsIn = held;
    held.join(flow);
    return held;
  }

  /** The flow contends no longer. It must not be held. */
  leave(flow: Flow): void {
    const held = flow.contendsIn;
    if (held === undefined) return;
    flow.contendsIn = undefined;
    held.leave(flow);
    if (held.contenders.size === 0) this.classes.delete(held.requestClass);
  }

  /** Forgets every class. No flow may be held. */
  clear(): void {
    for (const { contenders } of this.classes.values()) for (const flow of contenders) flow.contendsIn = undefined;
    this.classes.clear();
  }
}
