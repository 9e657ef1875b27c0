/**
 * Division of cost among shares, and of a share's part among its members: one level for tenants, more for
 * organisations.
 *
 *     root group ── share 'acme' ── group ── share 'search' ── group ── leaf 'key 1' ── flow
 *               └── share 'globex' …
 *
 * A request is picked from the root down, and charged from the leaf up: the same cost at each level, divided by the
 * level's weight. Invariant: a share is active exactly while one of its members is; `unsettled` counts the charges that
 * are open below it, `heldFlows` what is held back below it.
 */
import { type Share, ShareGroup, type ShareOrder } from './share.js';

/** Where fairness IDs stand, in a tree of several levels. */
export interface NamePaths {
  /** A name for each level, from the top down to the fairness ID's own. */
  pathOf(fairnessId: string): readonly string[];
  /** The weight of a share that is no leaf, by its names from the top. */
  weightOf(path: readonly string[]): number;
}

/** Shares whose flows are gone that are remembered for what they owe; those of silent bands would never be let go. */
const mostOrphans = 1024;

export class ShareTree {
  private readonly orphans = new Set<Share>();
  private readonly root: ShareGroup;
  private readonly orders: readonly (() => ShareOrder)[];
  /** Undefined in a tree of one level. */
  readonly paths: NamePaths | undefined;

  /** One order for each level. */
  constructor(orders: readonly (() => ShareOrder)[], paths?: NamePaths) {
    this.orders = orders;
    this.paths = paths;
    this.root = new ShareGroup((orders[0] as () => ShareOrder)(), undefined, this.orphans);
  }

  get levels(): number {
    return this.orders.length;
  }

  /** The leaf of a fairness ID. */
  leafOf(fairnessId: string): Share {
    return this.paths === undefined ? this.leaf(fairnessId) : this.leafAt(this.paths.pathOf(fairnessId));
  }

  /** The leaf of a name, in a tree of one level. */
  leaf(name: string): Share {
    return this.root.of(name);
  }

  /** The leaf at the end of a path that has a name for each level. */
  leafAt(path: readonly string[]): Share {
    let group: ShareGroup = this.root;
    const last = this.orders.length - 1;
    for (let level = 0; level < last; level++) {
      const share = group.of(path[level] as string);
      if (share.members === undefined) {
        share.members = new ShareGroup((this.orders[level + 1] as () => ShareOrder)(), share, this.orphans);
        share.weight = this.paths?.weightOf(path.slice(0, level + 1)) ?? 1;
      }
      group = share.members;
    }
    return group.of(path[last] as string);
  }

  /** The leaf to go next. */
  next(): Share | undefined {
    let share = this.root.order.next();
    while (share?.members !== undefined) share = share.members.order.next();
    return share;
  }

  /** Something can be picked. `isNew`: it was not held back, and begins where returning ones do. */
  activate(leaf: Share, isNew: boolean): void {
    for (let share: Share | undefined = leaf; share !== undefined && !share.isActive; share = share.siblings.owner) {
      share.siblings.wake(share);
      share.arrival = leaf.arrival;
      share.siblings.order.activate(share, isNew && share.heldFlows === 0);
      share.isActive = true;
    }
  }

  /** Nothing can be picked from the leaf any more. It is kept: what was picked may be charged yet. */
  deactivate(leaf: Share): void {
    for (let share: Share | undefined = leaf; share !== undefined; share = share.siblings.owner) {
      share.siblings.order.deactivate(share);
      share.isActive = false;
      if (share.siblings.order.size > 0) return;
    }
  }

  /** Something that waits in the leaf is held back: the shares on its path keep their counters until `releaseHeld`. */
  hold(leaf: Share): void {
    for (let share: Share | undefined = leaf; share !== undefined; share = share.siblings.owner) share.heldFlows++;
  }

  releaseHeld(leaf: Share): void {
    for (let share: Share | undefined = leaf; share !== undefined; share = share.siblings.owner) share.heldFlows--;
  }

  /** A request of the leaf goes; `hasWaited` is false if nothing was in its way. `settle` must follow. */
  charge(leaf: Share, cost: number, weight: number, hasWaited: boolean): void {
    let divisor = weight;
    for (let share: Share | undefined = leaf; share !== undefined; share = share.siblings.owner) {
      const { siblings } = share;
      if (!share.isActive) {
        siblings.wake(share);
        if (!hasWaited && share.heldFlows === 0) siblings.order.pass(share);
      }
      if (share.members !== undefined) share.arrival = share.members.order.next()?.arrival ?? share.arrival;
      share.unsettled++;
      siblings.order.charge(share, cost / divisor, cost);
      if (share.followers !== undefined) share.tellFollowers();
      siblings.tidy();
      divisor = siblings.owner?.weight ?? 1;
    }
  }

  /** Corrects what the leaf was charged. */
  correct(leaf: Share, cost: number, weight: number): void {
    let divisor = weight;
    for (let share: Share | undefined = leaf; share !== undefined; share = share.siblings.owner) {
      share.siblings.order.correct(share, cost / divisor);
      if (share.followers !== undefined) share.tellFollowers();
      divisor = share.siblings.owner?.weight ?? 1;
    }
  }

  /** What stands first in the leaf has this arrival number now. */
  renew(leaf: Share, arrival: number | undefined): void {
    if (arrival === undefined || arrival === leaf.arrival) return;
    leaf.arrival = arrival;
    leaf.siblings.order.correct(leaf, 0);
  }

  /** The lead of the leaf, or of the share above it that is furthest ahead of its siblings, over those that go next. */
  lead(leaf: Share, weight: number): number {
    let lead = (leaf.counter - leaf.siblings.order.mark) * weight;
    for (let share = leaf.siblings.owner; share !== undefined; share = share.siblings.owner)
      lead = Math.max(lead, (share.counter - share.siblings.order.mark) * share.weight);
    return lead;
  }

  /** A charge will not change any more. */
  settle(leaf: Share): void {
    for (let share: Share | undefined = leaf; share !== undefined; share = share.siblings.owner) share.unsettled--;
    this.review(leaf);
  }

  /** The leaf may have fallen idle. */
  review(leaf: Share): void {
    for (
      let share: Share | undefined = leaf;
      share?.isIdle === true && !share.isForgotten;
      share = share.siblings.owner
    ) {
      // A share without members has no flow that the controller could forget.
      if (share.members !== undefined) share.siblings.orphan(share);
      else share.siblings.rest(share);
      if (!share.isForgotten) return;
    }
  }

  /** The controller has forgotten the leaf's flow. */
  orphan(leaf: Share): void {
    leaf.siblings.orphan(leaf);
    this.reviewAbove(leaf);
    for (const surplus of this.orphans) {
      if (this.orphans.size <= mostOrphans) return;
      surplus.siblings.forget(surplus);
      this.reviewAbove(surplus);
    }
  }

  private reviewAbove({ isForgotten, siblings }: Share): void {
    if (isForgotten && siblings.owner !== undefined) this.review(siblings.owner);
  }

  /** The leaves and the shares above them, those of one level at a time. */
  *shares(): Generator<Share, void, undefined> {
    const groups: ShareGroup[] = [this.root];
    for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
      for (const share of group.values()) {
        yield share;
        if (share.members !== undefined) groups.push(share.members);
      }
    }
  }
}
