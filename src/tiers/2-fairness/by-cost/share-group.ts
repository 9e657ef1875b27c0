/**
 * Siblings: the shares of one parent, the order in which they go, and which of them may be forgotten.
 *
 *     active ⇄ idle, above the floor ──► forgotten as soon as the floor has passed its counter
 *
 * A share that returns is lifted to the floor, and the floor never falls: an idle share at or below it begins alike
 * whether it was kept or not.
 *
 * Invariant: an idle share is in `debtors` while its counter is above the floor, and is removed otherwise. If its
 * order, or the order of a share above it, has no floor, it is kept until the controller removes its flow.
 */
import { Share, type ShareOrder, type Siblings } from './share.js';
import { ShareHeap } from './share-heap.js';

/**
 * Shares above the floor whose flows the controller has forgotten, longest forgotten first. In a band that has fallen
 * silent no floor rises, so there may be any number of them. Beyond `most`, the debt of the first of them is forgiven.
 */
export class Orphans {
  private readonly shares = new Set<Share>();
  private readonly most: number;

  constructor(most: number) {
    this.most = most;
  }

  add(share: Share): void {
    this.shares.add(share);
  }

  delete(share: Share): void {
    this.shares.delete(share);
  }

  /** The longest forgotten share while there are more than `most`; undefined otherwise. */
  get surplus(): Share | undefined {
    if (this.shares.size <= this.most) return undefined;
    for (const share of this.shares) return share;
    return undefined;
  }
}

/** Doubles hold integers up to 2^53: 13 bits are left for fractions of a token. */
export const rebaseAbove: number = 2 ** 40;

export class ShareGroup implements Siblings {
  readonly order: ShareOrder;
  readonly owner: Share | undefined;
  readonly keepsFlows: boolean;
  private readonly shares = new Map<string, Share>();
  private readonly debtors = new ShareHeap();
  private readonly orphans: Orphans;
  /** Taken off every counter so far. */
  private lowered = 0;

  constructor(order: ShareOrder, owner: Share | undefined, orphans: Orphans) {
    this.order = order;
    this.owner = owner;
    this.keepsFlows = owner !== undefined && (owner.siblings.keepsFlows || Number.isNaN(owner.siblings.order.floor));
    this.orphans = orphans;
  }

  get size(): number {
    return this.shares.size;
  }

  of(name: string): Share {
    let share = this.shares.get(name);
    if (share === undefined) {
      share = new Share(name, this);
      // Where no floor lifts it, it is as far behind as if nothing had been taken off.
      if (Number.isNaN(this.order.floor)) share.counter = 0 - this.lowered;
      this.shares.set(name, share);
    }
    return share;
  }

  values(): IterableIterator<Share> {
    return this.shares.values();
  }

  wake(share: Share): void {
    if (share.slot >= 0 && !share.isActive) this.debtors.remove(share);
    if (!share.isOrphan) return;
    share.isOrphan = false;
    this.orphans.delete(share);
  }

  rest(share: Share): void {
    if (share.slot >= 0) this.debtors.remove(share);
    const { floor } = this.order;
    if (share.counter <= floor || Number.isNaN(floor)) {
      this.forgetIfSettled(share);
    } else {
      this.debtors.push(share, share.counter, share.arrival);
      if (share.isOrphan) this.orphans.add(share);
    }
  }

  orphan(share: Share): void {
    if (share.isActive || share.heldFlows > 0) return;
    share.isOrphan = true;
    if (share.isIdle) this.rest(share);
  }

  tidy(): void {
    const { order, debtors } = this;
    for (let { first } = debtors; first !== undefined && first.counter <= order.floor; { first } = debtors) {
      debtors.remove(first);
      this.forgetIfSettled(first);
    }
    const { excess } = order;
    if (excess !== 0) this.lower(excess);
  }

  forget(share: Share): void {
    this.wake(share);
    this.shares.delete(share.name);
    share.isForgotten = true;
  }

  /** Forgets an idle share whose past makes no difference to its siblings any more, or always will. */
  private forgetIfSettled(share: Share): void {
    if (share.isOrphan || !(this.keepsFlows || Number.isNaN(this.order.floor))) this.forget(share);
  }

  private lower(amount: number): void {
    this.lowered += amount;
    for (const share of this.shares.values()) share.counter -= amount;
    this.order.lower(amount);
    this.debtors.lower(amount);
    for (const share of this.shares.values()) share.tellFollowers();
  }
}
