/**
 * The least counter goes next. Virtual token counters, start-time fair queueing and least service are this order; they
 * differ in where a share that returns begins.
 *
 * | lift    | a share whose first request comes begins at                              | so that                              |
 * | `floor` | the largest counter picked so far                                        | idle time earns nothing              |
 * | `vtc`   | the least counter of those that wait, else that of the last to have left | as the paper has it                  |
 * | `none`  | its own                                                                  | what was not used may be made up for |
 *
 * Invariant: the heap holds the active shares by their counters; `highest` never falls but by `lower`. Source: Sheng et
 * al., "Fairness in Serving Large Language Models" (OSDI '24); Goyal, Vin and Cheng, "Start-time Fair Queueing" (1996).
 */
import { rebaseAbove, type Share, type ShareOrder } from './share.js';
import { ShareHeap } from './share-heap.js';

export type Lift = 'floor' | 'vtc' | 'none';

export class VirtualCounters implements ShareOrder {
  private readonly heap = new ShareHeap<Share>();
  /** The largest counter of a share at the moment it was picked. */
  private highest = 0;
  /** The last share to have left; it counts only while none waits. */
  private lastToLeave: Share | undefined = undefined;
  private readonly lift: Lift;

  constructor(lift: Lift) {
    this.lift = lift;
  }

  get size(): number {
    return this.heap.size;
  }

  get floor(): number {
    return this.lift === 'floor' ? this.highest : NaN;
  }

  get mark(): number {
    return this.heap.size > 0 ? this.heap.firstKey : this.highest;
  }

  get excess(): number {
    return this.highest > rebaseAbove ? this.highest : 0;
  }

  activate(share: Share, isNew: boolean): void {
    if (isNew) this.raise(share);
    this.heap.push(share, share.counter, share.arrival);
  }

  deactivate(share: Share): void {
    this.heap.remove(share);
    this.lastToLeave = share;
  }

  next(): Share | undefined {
    return this.heap.first;
  }

  pass(share: Share): void {
    this.raise(share);
    this.lastToLeave = share;
  }

  charge(share: Share, amount: number): void {
    if (share.counter > this.highest) this.highest = share.counter;
    this.correct(share, amount);
  }

  correct(share: Share, amount: number): void {
    share.counter += amount;
    if (share.isActive) this.heap.update(share, share.counter, share.arrival);
  }

  lower(amount: number): void {
    this.heap.lower(amount);
    this.highest -= amount;
    const { lastToLeave } = this;
    if (lastToLeave?.isForgotten === true) lastToLeave.counter -= amount;
  }

  private raise(share: Share): void {
    if (this.lift === 'none') return;
    const least = this.lift === 'floor' ? this.highest : (this.heap.first ?? this.lastToLeave)?.counter;
    if (least !== undefined && share.counter < least) share.counter = least;
  }
}
