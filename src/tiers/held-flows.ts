/**
 * Flows of one band whose first request waits for its endpoints alone, by the class of that request.
 *
 *     class 'model=a':  retrying flow │ flow ⇄ flow ⇄ flow     when the class has room, one flow at a time retries, in turn;
 *                                                             where flows are mere labels, the one whose request comes first
 *
 * Invariant: a held flow is not among its band's active flows; `waiting` is the sum over the held flows.
 */
import { LinkedList } from '../base/queues/linked-list.js';
import type { FlowSelector } from './2-fairness/fairness-policy.js';
import type { Flow } from './flow.js';

export class HeldClass {
  readonly flows: LinkedList<Flow> = new LinkedList<Flow>();
  /** The flow that was released last, until it is served or held again. */
  retrying: Flow | undefined = undefined;
  readonly requestClass: string | undefined;
  /** Says which flow's first request goes first; undefined where flows take turns. */
  readonly order: FlowSelector | undefined;

  constructor(requestClass: string | undefined, order: FlowSelector | undefined) {
    this.requestClass = requestClass;
    this.order = order;
  }

  /** The flow to release next. */
  first(nowMs: number): Flow | undefined {
    return (this.order?.pick(nowMs) as Flow | undefined) ?? this.flows.first;
  }
}

export class HeldFlows {
  /** Requests that wait in held flows. */
  waiting = 0;
  private readonly classes = new Map<string | undefined, HeldClass>();

  /** Every class with held flows, or with one that retries. */
  all(): readonly HeldClass[] {
    return [...this.classes.values()];
  }

  get flowCount(): number {
    let count = 0;
    for (const { flows } of this.classes.values()) count += flows.size;
    return count;
  }

  *flows(): Generator<Flow, void, undefined> {
    for (const { flows } of this.classes.values()) yield* flows;
  }

  /** One more request waits in a held flow. */
  added(): void {
    this.waiting++;
  }

  /** One request less waits in a held flow. */
  left(): void {
    this.waiting--;
  }

  hold(flow: Flow, requestClass: string | undefined, makeOrder?: () => FlowSelector): void {
    let held = this.classes.get(requestClass);
    if (held === undefined) {
      held = new HeldClass(requestClass, makeOrder?.());
      this.classes.set(requestClass, held);
    }
    held.flows.push(flow);
    held.order?.flowActivated?.(flow);
    flow.heldIn = held;
    this.waiting += flow.waiting;
  }

  /** Releases a held flow. */
  release(flow: Flow): void {
    const held = flow.heldIn;
    if (held === undefined) return;
    held.flows.remove(flow);
    held.order?.flowDeactivated?.(flow);
    flow.heldIn = undefined;
    this.waiting -= flow.waiting;
    this.removeIfDone(held);
  }

  /** Releases the flow that retries next. */
  retryOne(held: HeldClass, nowMs: number): Flow | undefined {
    const flow = held.first(nowMs);
    if (flow === undefined) return undefined;
    held.retrying = flow;
    flow.retriesFor = held;
    this.release(flow);
    return flow;
  }

  /** Ends a retry, because the flow was served, is held again, or has nothing left: the next one may retry. */
  retried(flow: Flow): void {
    const held = flow.retriesFor;
    if (held === undefined) return;
    flow.retriesFor = undefined;
    if (held.retrying === flow) held.retrying = undefined;
    this.removeIfDone(held);
  }

  /** Forgets every class. The held flows must have been released. */
  clear(): void {
    for (const { retrying } of this.classes.values()) if (retrying !== undefined) retrying.retriesFor = undefined;
    this.classes.clear();
  }

  private removeIfDone(held: HeldClass): void {
    const isDone = held.flows.size === 0 && held.retrying === undefined;
    if (isDone && this.classes.get(held.requestClass) === held) this.classes.delete(held.requestClass);
  }
}
