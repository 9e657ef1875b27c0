/**
 * Flows of one band whose first request waits for its endpoints alone, by the class of that request.
 *
 *     class 'model=a':  contenders ── order ──► the one that tier 2 lets go first
 *                        │ held ◄──────┐        held: it is let out as soon as the class has room for it
 *                        └ let out ────┘        let out: it is among the active flows, and is held again if it finds no room
 *
 * Invariant: a held flow is not among its band's active flows; `waiting` is the sum over the held flows. A flow
 * contends in one class at most, from the moment that it is held until nothing of it waits, its first request is of
 * another class, or it is parked. A class lives while flows contend in it.
 */
import { LinkedList } from '../base/queues/linked-list.js';
import type { GuardedSelector, PickedBand } from './2-fairness/guarded-selector.js';
import { Flow } from './flow.js';
import type { WaitingItem } from './waiting-item.js';

/** Makes the order of the flows of one class. */
export type MakeOrder = (flows: PickedBand) => GuardedSelector;

/** The flows that contend in a class are a band to the selector that orders them. */
export class HeldClass implements PickedBand {
  /** The held ones of the contenders. */
  readonly flows: LinkedList<Flow> = new LinkedList<Flow>();
  readonly contenders: Set<Flow> = new Set();
  readonly requestClass: string | undefined;
  readonly priority: number;
  private order: GuardedSelector | undefined = undefined;
  private readonly makeOrder: MakeOrder;

  constructor(requestClass: string | undefined, priority: number, makeOrder: MakeOrder) {
    this.requestClass = requestClass;
    this.priority = priority;
    this.makeOrder = makeOrder;
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
    for (const flow of this.contenders) this.order?.flowActivated(flow);
  }

  /** The contender whose first request goes before those of the others; it may be let out already. */
  first(nowMs: number): Flow | undefined {
    const first = this.order?.pick(nowMs);
    return this.isActiveFlow(first) ? first : this.flows.first;
  }

  join(flow: Flow): void {
    this.contenders.add(flow);
    // One flow needs no order: with sessions, most classes have one.
    if (this.contenders.size === 1) return;
    if (this.order !== undefined) {
      this.order.flowActivated(flow);
      return;
    }
    this.order = this.makeOrder(this);
    this.tellOfWaiting();
  }

  leave(flow: Flow): void {
    this.contenders.delete(flow);
    if (flow.waiting > 0) this.order?.flowDeactivated(flow, true);
    this.order?.flowRemoved(flow);
  }

  itemAdded(flow: Flow, item: WaitingItem): void {
    this.order?.itemAdded(flow, item);
  }

  itemRemoved(flow: Flow, item: WaitingItem): void {
    if (flow.waiting === 0) this.order?.flowDeactivated(flow);
    this.order?.itemRemoved(flow, item);
  }

  dispatched(flow: Flow, item: WaitingItem, nowMs: number): void {
    if (flow.waiting === 0) this.order?.flowDeactivated(flow);
    this.order?.dispatched(flow, item, nowMs);
  }
}

export class HeldFlows {
  /** Requests that wait in held flows. */
  waiting = 0;
  private readonly classes = new Map<string | undefined, HeldClass>();
  private readonly priority: number;
  private readonly makeOrder: MakeOrder;

  constructor(priority: number, makeOrder: MakeOrder) {
    this.priority = priority;
    this.makeOrder = makeOrder;
  }

  /** Every class in which a flow is held, or was lately. */
  all(): readonly HeldClass[] {
    return [...this.classes.values()];
  }

  get flowCount(): number {
    return sum(this.classes.values(), ({ flows }) => flows.size);
  }

  *flows(): Generator<Flow, void, undefined> {
    for (const { flows } of this.classes.values()) yield* flows;
  }

  /** Holds a flow that is among the active ones no longer. */
  hold(flow: Flow): void {
    const requestClass = flow.head?.requestClass;
    if (flow.contendsIn?.requestClass !== requestClass) this.leave(flow);
    let held = flow.contendsIn ?? this.classes.get(requestClass);
    if (held === undefined) {
      held = new HeldClass(requestClass, this.priority, this.makeOrder);
      this.classes.set(requestClass, held);
    }
    held.flows.push(flow);
    flow.isHeld = true;
    this.waiting += flow.waiting;
    if (flow.contendsIn !== undefined) return;
    flow.contendsIn = held;
    held.join(flow);
  }

  /** Lets a held flow out; it contends on. */
  release(flow: Flow): void {
    if (!flow.isHeld) return;
    flow.contendsIn?.flows.remove(flow);
    flow.isHeld = false;
    this.waiting -= flow.waiting;
  }

  /** The flow contends no longer. It must not be held. */
  leave(flow: Flow): void {
    const held = flow.contendsIn;
    if (held === undefined) return;
    flow.contendsIn = undefined;
    held.leave(flow);
    if (held.contenders.size === 0) this.classes.delete(held.requestClass);
  }

  /** One more request waits in a held flow. */
  added(): void {
    this.waiting++;
  }

  /** One request less waits in a held flow. */
  left(): void {
    this.waiting--;
  }

  /** Forgets every class. The held flows must have been released. */
  clear(): void {
    for (const { contenders } of this.classes.values()) for (const flow of contenders) flow.contendsIn = undefined;
    this.classes.clear();
  }
}

function sum<T>(parts: Iterable<T>, of: (part: T) => number): number {
  let total = 0;
  for (const part of parts) total += of(part);
  return total;
}
