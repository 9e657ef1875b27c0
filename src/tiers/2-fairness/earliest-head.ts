/** Picks the flow whose head is first by the ordering policy; replaces a shared queue where flows can be held back. */
import { HeapQueue } from '../../base/queues/heap-queue.js';
import type { Queued } from '../../base/queues/item-queue.js';
import type { FlowView, ItemView } from '../views.js';
import type { FlowFairnessPolicy, FlowSelector } from './fairness-policy.js';

/** A flow's place in the heap, by the head it had when it was entered. */
interface Entry extends Queued {
  isWaiting: boolean;
  readonly flow: FlowView;
  readonly head: ItemView;
}

/** The flow whose head comes first by `compare`, which must break its own ties. O(log flows). */
export function earliestHead(type: string, compare: (a: ItemView, b: ItemView) => number): FlowFairnessPolicy {
  return { type, createSelector: () => earliestHeadSelector(compare) };
}

/** Invariant: one living entry for each active flow, made of its present head. */
function earliestHeadSelector(compare: (a: ItemView, b: ItemView) => number): FlowSelector {
  const entries = new Map<FlowView, Entry>();
  const heap = new HeapQueue<Entry>((a, b) => compare(a.head, b.head));

  function enter(flow: FlowView): void {
    const { head } = flow;
    if (head === undefined) return;
    const entry: Entry = { isWaiting: true, flow, head, sequence: head.sequence };
    entries.set(flow, entry);
    heap.push(entry);
  }

  function leave(flow: FlowView): void {
    const entry = entries.get(flow);
    if (entry === undefined) return;
    entries.delete(flow);
    entry.isWaiting = false;
    heap.discard();
  }

  function renew(flow: FlowView): void {
    const entry = entries.get(flow);
    if (entry === undefined || entry.head === flow.head) return;
    leave(flow);
    enter(flow);
  }

  return {
    pick: () => heap.peek()?.flow,
    flowActivated: enter,
    flowDeactivated: leave,
    itemAdded: renew,
    itemRemoved: renew,
    dispatched: renew,
    forHeld: () => earliestHeadSelector(compare),
  };
}
