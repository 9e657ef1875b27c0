/**
 * Picks the flow whose first request is first by the ordering policy. It replaces the one shared queue when single
 * flows can be held back.
 */
import { HeapQueue } from '../../base/queues/heap-queue.js';
import type { Queued } from '../../base/queues/item-queue.js';
import type { FlowView, ItemView } from '../views.js';
import type { FlowFairnessPolicy, FlowSelector } from './fairness-policy.js';

/** A flow's place in the heap, by the head it had when it was entered. */
class Entry implements Queued {
  isWaiting = true;
  readonly flow: FlowView;
  readonly head: ItemView;

  constructor(flow: FlowView, head: ItemView) {
    this.flow = flow;
    this.head = head;
  }

  get sequence(): number {
    return this.head.sequence;
  }
}

/** Invariant: one living entry for each active flow, made of its present head. */
class EarliestHeadSelector implements FlowSelector {
  private readonly entries = new Map<FlowView, Entry>();
  private readonly heap: HeapQueue<Entry>;

  private readonly compare: (a: ItemView, b: ItemView) => number;

  constructor(compare: (a: ItemView, b: ItemView) => number) {
    this.compare = compare;
    this.heap = new HeapQueue<Entry>((a, b) => compare(a.head, b.head));
  }

  pick(): FlowView | undefined {
    return this.heap.peek()?.flow;
  }

  flowActivated(flow: FlowView): void {
    this.enter(flow);
  }

  flowDeactivated(flow: FlowView): void {
    this.leave(flow);
  }

  itemAdded(flow: FlowView): void {
    this.renew(flow);
  }

  itemRemoved(flow: FlowView): void {
    this.renew(flow);
  }

  dispatched(flow: FlowView): void {
    this.renew(flow);
  }

  forHeld(): FlowSelector {
    return new EarliestHeadSelector(this.compare);
  }

  private renew(flow: FlowView): void {
    const entry = this.entries.get(flow);
    if (entry === undefined || entry.head === flow.head) return;
    this.leave(flow);
    this.enter(flow);
  }

  private enter(flow: FlowView): void {
    if (flow.head === undefined) return;
    const entry = new Entry(flow, flow.head);
    this.entries.set(flow, entry);
    this.heap.push(entry);
  }

  private leave(flow: FlowView): void {
    const entry = this.entries.get(flow);
    if (entry === undefined) return;
    this.entries.delete(flow);
    entry.isWaiting = false;
    this.heap.discard();
  }
}

/** The flow whose head comes first by `compare`, which must break its own ties. O(log flows). */
export function earliestHead(type: string, compare: (a: ItemView, b: ItemView) => number): FlowFairnessPolicy {
  return { type, createSelector: () => new EarliestHeadSelector(compare) };
}
