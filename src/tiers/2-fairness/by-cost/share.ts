/** A party to a division of cost: tenant, project, organisation or shared queue. Its siblings know who is next. */
import type { Linked, LinkedList } from '../../../base/queues/linked-list.js';
import { textHash } from '../../../base/text-hash.js';
import type { FlowView } from '../../views.js';
import { ShareHeap } from './share-heap.js';

/** A leaf has flows, others a group. Invariant: `counter` is cost by weight, from where siblings' order lifted it. */
export class Share implements Linked<Share> {
  /** Its slot in its heap, −1 in none. The order of its siblings owns it, as links, list, turn and round. */
  slot = -1;
  counter = 0;
  /** The arrival number of the request that stood first when it was last looked at: it goes between equal counters. */
  arrival = 0;
  /** Cost charged to it so far, of a leaf. */
  received = 0;
  /** Requests in flight below it that may still change its counter. */
  unsettled = 0;
  /** True while something that can be picked waits below it. */
  isActive = false;
  /** True once the controller has forgotten its flow. */
  isOrphan = false;
  /** True when its group has removed it. */
  isForgotten = false;
  /** The flow to be picked, if the leaf is active, and the other flows of the leaf. */
  flow: FlowView | undefined = undefined;
  moreFlows: FlowView[] | undefined = undefined;
  /** The group of its members; undefined for a leaf. */
  members: ShareGroup | undefined = undefined;
  /** Waiting flows below it that are held back; they cannot be picked, and keep their place. In a shard, requests. */
  heldFlows = 0;
  /** Shares of other trees that have its counter; and the share whose counter it has. */
  followers: Share[] | undefined = undefined;
  standsFor: Share | undefined = undefined;
  /** Divides what is charged to it; leaves have it from their flows. */
  weight = 1;
  previous: Share | undefined = undefined;
  next: Share | undefined = undefined;
  /** The list that it is in, where there are rounds. */
  list: LinkedList<Share> | undefined = undefined;
  /** Its place in the rounds, where there are rounds. */
  turn = 0;
  /** The round in which its turn came last, by the number of those before it. */
  visitedIn = -1;
  private hashedId: string | undefined = undefined;
  private hash = 0;
  readonly name: string;
  readonly siblings: ShareGroup;

  constructor(name: string, siblings: ShareGroup) {
    this.name = name;
    this.siblings = siblings;
  }

  /** The hash of a fairness ID. A leaf keeps it: nearly always the next request has the same (bench: fairness). */
  hashOf(fairnessId: string): number {
    if (fairnessId !== this.hashedId) {
      this.hashedId = fairnessId;
      this.hash = textHash(fairnessId) | 0;
    }
    return this.hash;
  }

  /** True when nothing waits below it or is unsettled. */
  get isIdle(): boolean {
    if (this.isActive || this.unsettled > 0 || this.heldFlows > 0) return false;
    return this.members === undefined || this.members.size === 0;
  }

  /** Gives those that follow its counter, and the place of what now stands first below them. */
  tellFollowers(): void {
    for (const follower of this.followers ?? []) {
      follower.counter = this.counter;
      follower.arrival = follower.members?.order.next()?.arrival ?? follower.arrival;
      follower.siblings.order.correct(follower, 0);
    }
  }

  /** Of several flows, the one whose first request came first. */
  get firstFlow(): FlowView | undefined {
    let first = this.flow;
    if (this.moreFlows === undefined) return first;
    for (const flow of this.moreFlows)
      if ((flow.head?.sequence ?? Infinity) < (first?.head?.sequence ?? Infinity)) first = flow;
    return first;
  }

  /** True when it is the leaf's first. */
  addFlow(flow: FlowView): boolean {
    if (this.flow === undefined) {
      this.flow = flow;
      return true;
    }
    this.moreFlows ??= [];
    this.moreFlows.push(flow);
    return false;
  }

  /** True when it was the leaf's last. */
  removeFlow(flow: FlowView): boolean {
    if (this.moreFlows !== undefined) {
      if (this.flow === flow) this.flow = this.moreFlows.shift();
      else this.moreFlows = this.moreFlows.filter((other) => other !== flow);
      if (this.moreFlows.length === 0) this.moreFlows = undefined;
      return false;
    }
    if (this.flow === flow) this.flow = undefined;
    return this.flow === undefined;
  }
}

/**
 * Contract: knows the active shares of one group. `next` changes nothing; `charge` does. Counters are in cost per
 * weight. Cost: O(log shares), or O(1) amortized.
 */
export interface ShareOrder {
  /** Active shares. */
  readonly size: number;
  /** A share that returns is lifted to it; it never falls. NaN when the past always counts. */
  readonly floor: number;
  /** The counter at which shares go now: those above it have had more. */
  readonly mark: number;
  /** Something waits in the share. `isNew`: it had nothing waiting, and is lifted to where those that return begin. */
  activate(share: Share, isNew: boolean): void;
  deactivate(share: Share): void;
  /** The active share to go next. */
  next(): Share | undefined;
  /** A request went that never waited: lifts the share, as if it had waited for no time. `charge` follows. */
  pass(share: Share): void;
  /** A request of the share goes. `cost`: what `amount` was before it was divided by the weight. */
  charge(share: Share, amount: number, cost?: number): void;
  /** Corrects the charge of a running request, or the share's `arrival` has changed. */
  correct(share: Share, amount: number): void;
  /** A number that may be taken off all counters, once they have grown beyond what keeps them exact; 0 before. */
  readonly excess: number;
  /** `amount` was taken off every counter. */
  lower(amount: number): void;
}

/** Doubles hold integers up to 2^53: 13 bits are left for fractions of a token. */
export const rebaseAbove: number = 2 ** 40;

/**
 * The shares of one parent, the order in which they go, and which of them may be forgotten.
 *
 *     active ⇄ idle, above the floor ──► forgotten as soon as the floor has passed its counter
 *
 * A share that returns is lifted to the floor, and the floor never falls: an idle share at or below it begins alike
 * whether it was kept or not.
 * Invariant: an idle share is in `debtors` while its counter is above the floor, and is removed otherwise. If its
 * order, or the order of a share above it, has no floor, it is kept until the controller removes its flow.
 */
export class ShareGroup {
  readonly order: ShareOrder;
  /** The share that these divide among them; undefined at the root. */
  readonly owner: Share | undefined;
  /** True below an order without a floor: members are kept, because a share above is remembered as long as they. */
  private readonly keepsFlows: boolean;
  private readonly shares = new Map<string, Share>();
  private readonly debtors = new ShareHeap<Share>();
  /** Forgotten shares above the floor, of the whole tree, the longest first. */
  private readonly orphans: Set<Share>;
  /** Taken off every counter so far. */
  private lowered = 0;

  constructor(order: ShareOrder, owner: Share | undefined, orphans: Set<Share>) {
    this.order = order;
    this.owner = owner;
    this.keepsFlows = owner !== undefined && (owner.siblings.keepsFlows || Number.isNaN(owner.siblings.order.floor));
    this.orphans = orphans;
  }

  get size(): number {
    return this.shares.size;
  }

  /** The share of a name, made when missing. */
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

  /** The share is no longer idle. */
  wake(share: Share): void {
    if (share.slot >= 0 && !share.isActive) this.debtors.remove(share);
    if (!share.isOrphan) return;
    share.isOrphan = false;
    this.orphans.delete(share);
  }

  /** An idle share is forgotten, or kept until the floor has passed it. */
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

  /** The controller has forgotten the share's flow. */
  orphan(share: Share): void {
    if (share.isActive || share.heldFlows > 0) return;
    share.isOrphan = true;
    if (share.isIdle) this.rest(share);
  }

  /** Forgets the idle that the floor has passed, and keeps counters small. O(1) amortized. */
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
