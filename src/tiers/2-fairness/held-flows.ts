/**
 * Flows of one band whose first request could go but for the endpoints it may go to, by the class of that request.
 *
 *     class 'model=a':  trying flow │ flow ⇄ flow ⇄ flow      one at a time is let out, in turn, when its endpoints have room
 *
 * Invariant: a held flow is not among its band's active flows; `waiting` is the sum over the held flows.
 */
import { LinkedList } from '../../queues/linked-list.js';
import type { Flow } from './flow.js';

export class HeldClass {
  readonly flows: LinkedList<Flow> = new LinkedList<Flow>();
  /** Let out, and neither served nor held again yet. */
  trying: Flow | undefined = undefined;
  readonly requestClass: string | undefined;

  constructor(requestClass: string | undefined) {
    this.requestClass = requestClass;
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

  hold(flow: Flow, requestClass: string | undefined): void {
    let held = this.classes.get(requestClass);
    if (held === undefined) {
      held = new HeldClass(requestClass);
      this.classes.set(requestClass, held);
    }
    held.flows.push(flow);
    flow.heldIn = held;
    this.waiting += flow.waiting;
  }

  /** Lets a held flow out. */
  release(flow: Flow): void {
    const held = flow.heldIn;
    if (held === undefined) return;
    held.flows.remove(flow);
    flow.heldIn = undefined;
    this.waiting -= flow.waiting;
    this.forgetIfDone(held);
  }

  /** Lets the flow that has been held longest out to try. */
  letTry(held: HeldClass): Flow | undefined {
    const flow = held.flows.first;
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
    held.trying = undefined;
    this.forgetIfDone(held);
  }

  private forgetIfDone(held: HeldClass): void {
    if (held.flows.size === 0 && held.trying === undefined) this.classes.delete(held.requestClass);
  }
}
