/**
 * Flows of one band whose first request could go but for the endpoints it may go to, by the class of that request.
 *
 *     class 'model=a':  trying flow │ flow ⇄ flow ⇄ flow      one at a time is let out, in turn, when its endpoints have room;
 *                                                            where flows are mere labels, the one whose request comes first
 *
 * Invariant: a held flow is not among its band's active flows; `waiting` is the sum over the held flows.
 */
import { LinkedList } from '../base/queues/linked-list.js';
import type { FlowSelector } from './2-fairness/fairness-policy.js';
import type { Flow } from './flow.js';

export class HeldClass {
  readonly flows: LinkedList<Flow> = new LinkedList<Flow>();
  /** The last to be let out, while it is neither served nor held again yet. */
  trying: Flow | undefined = undefined;
  readonly requestClass: string | undefined;
  /** Says whose request comes first; undefined where flows take turns. */
  readonly order: FlowSelector | undefined;

  constructor(requestClass: string | undefined, order: FlowSelector | undefined) {
    this.requestClass = requestClass;
    this.order = order;
  }

  /** The flow to be let out next. */
  first(nowMs: number): Flow | undefined {
    return (this.order?.pick(nowMs) as Flow | undefined) ?? this.flows.first;
  }
}

export class HeldFlows {
  /** Requests that wait in held flows. */
  waiting = 0;
  private readonly classes = new Map<string | undefined, HeldClass>();

  /** Classes with flows to let out. */
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

  /** Lets a held flow out. */
  release(flow: Flow): void {
    const held = flow.heldIn;
    if (held === undefined) return;
    held.flows.remove(flow);
    held.order?.flowDeactivated?.(flow);
    flow.heldIn = undefined;
    this.waiting -= flow.waiting;
    this.forgetIfDone(held);
  }

  /** Lets the flow out whose turn it is to try. */
  letTry(held: HeldClass, nowMs: number): Flow | undefined {
    const flow = held.first(nowMs);
    if (flow === undefined) return undefined;
    held.trying = flow;
    flow.triesFor = held;
    this.release(flow);
    return flow;
  }

  /** The flow was served, is held again, or has nothing left: the next one may try. */
  tried(flow: Flow): void {
    const held = flow.triesFor;
    if (held === undefined) return;
    flow.triesFor = undefined;
    if (held.trying === flow) held.trying = undefined;
    this.forgetIfDone(held);
  }

  /** Nobody is held back any more. */
  clear(): void {
    for (const { trying } of this.classes.values()) if (trying !== undefined) trying.triesFor = undefined;
    this.classes.clear();
  }

  private forgetIfDone(held: HeldClass): void {
    const isDone = held.flows.size === 0 && held.trying === undefined;
    if (isDone && this.classes.get(held.requestClass) === held) this.classes.delete(held.requestClass);
  }
}
