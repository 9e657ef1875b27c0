/**
 * One party to a division of cost: a tenant, a project, an organisation, or a queue that many share. Its group of
 * siblings knows which of them goes next, and which are remembered.
 */
import type { Linked, LinkedList } from '../../../base/queues/linked-list.js';
import { textHash } from '../../../base/text-hash.js';
import type { FlowView } from '../../views.js';

/**
 * A leaf has flows, any other share a group of its own.
 *
 * Invariant: `counter` is the cost it received, each part divided by the weight it was received with, counted from
 * where its siblings' order lifted it to.
 */
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
  members: Siblings | undefined = undefined;
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
  readonly siblings: Siblings;

  constructor(name: string, siblings: Siblings) {
    this.name = name;
    this.siblings = siblings;
  }

  /**
   * The hash of a fairness ID. A leaf keeps it, because nearly always the next request has the same (bench: fairness).
   */
  hashOf(fairnessId: string): number {
    if (fairnessId !== this.hashedId) {
      this.hashedId = fairnessId;
      this.hash = textHash(fairnessId) | 0;
    }
    return this.hash;
  }

  /** True when nothing waits below it or is unsettled. */
  get isIdle(): boolean {
    return (
      !this.isActive &&
      this.unsettled === 0 &&
      this.heldFlows === 0 &&
      (this.members === undefined || this.members.size === 0)
    );
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
    for (const flow of this.moreFlows) {
      if ((flow.head?.sequence ?? Number.POSITIVE_INFINITY) < (first?.head?.sequence ?? Number.POSITIVE_INFINITY))
        first = flow;
    }
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
 * Which of several siblings goes next: virtual counters, or deficit rounds.
 *
 * Contract: knows the active shares of one group. `next` does not change who goes next; `charge` does. Counters are in
 * cost per weight. Cost: O(log shares), or O(1) amortized.
 */
export interface ShareOrder {
  /** Active shares. */
  readonly size: number;
  /**
   * Counters at or below it make no difference: a share that returns is lifted to it. Never falls. NaN when a share's
   * past always counts, so that forgetting it would change what comes after.
   */
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

/** The shares of one parent. */
export interface Siblings {
  readonly order: ShareOrder;
  /** The share that these divide among them; undefined at the root. */
  readonly owner: Share | undefined;
  /**
   * True below an order without a floor: a share above is remembered as long as the controller has a flow below it, so
   * members are kept.
   */
  readonly keepsFlows: boolean;
  readonly size: number;
  /** The share of a name, made when missing. */
  of(name: string): Share;
  values(): Iterable<Share>;
  /** The share is no longer idle. */
  wake(share: Share): void;
  /** An idle share is forgotten, or kept until the floor has passed it. */
  rest(share: Share): void;
  /** The controller has forgotten the share's flow. */
  orphan(share: Share): void;
  /** Forgets the idle that the floor has passed, and keeps counters small. O(1) amortized. */
  tidy(): void;
  forget(share: Share): void;
}
