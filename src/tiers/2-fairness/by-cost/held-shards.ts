/**
 * Orders flows that are held back together by the queues in which their requests stand: the queue with the least
 * counter goes first, and of its requests the one that came first. Invariant: every waiting request of these flows has
 * a place, in the queue in which the policy has put it last; where it has put it in none yet, in the first of its hand.
 */
import { put } from '../../../base/put.js';
import { FifoQueue } from '../../../base/queues/fifo-queue.js';
import type { Queued } from '../../../base/queues/item-queue.js';
import type { FlowView, ItemView } from '../../views.js';
import type { FlowSelector } from '../fairness-policy.js';
import { follow, treeOfStandIns, unfollow } from './held-shares.js';
import type { ShareTree } from './share-tree.js';

/** The policy, as its held flows see it. */
export interface Shards {
  readonly tree: ShareTree;
  /** The orders that have requests. */
  readonly heldOrders: Set<HeldShards>;
  itemsOf(flow: FlowView): Iterable<ItemView>;
  /** The number of the queue in which the request stands, or will. */
  shardOf(flow: FlowView, item: ItemView): number;
}

interface HeldPlace extends Queued {
  isWaiting: boolean;
  readonly flow: FlowView;
  /** The number of its queue. */
  readonly shard: number;
}

export class HeldShards implements FlowSelector {
  private readonly tree: ShareTree;
  private readonly places = new Map<ItemView, HeldPlace>();
  private readonly lines = new Map<string, FifoQueue<HeldPlace>>();
  private readonly shards: Shards;

  constructor(shards: Shards) {
    this.shards = shards;
    this.tree = treeOfStandIns(shards.tree);
  }

  pick(): FlowView | undefined {
    const leaf = this.tree.next();
    return leaf && this.lines.get(leaf.name)?.peek()?.flow;
  }

  flowActivated(flow: FlowView): void {
    for (const item of this.shards.itemsOf(flow)) this.itemAdded(flow, item);
  }

  flowDeactivated(flow: FlowView): void {
    if (flow.waiting > 0) for (const item of this.shards.itemsOf(flow)) this.remove(item);
  }

  itemAdded(flow: FlowView, item: ItemView): void {
    const shard = this.shards.shardOf(flow, item);
    const place: HeldPlace = { isWaiting: true, flow, sequence: item.sequence, shard };
    this.places.set(item, place);
    this.shards.heldOrders.add(this);
    const name = String(shard);
    const leaf = this.tree.leaf(name);
    const line = this.lines.get(name) ?? put(this.lines, name, new FifoQueue());
    line.push(place);
    if (leaf.isActive) return void this.tree.renew(leaf, line.peek()?.sequence);
    leaf.arrival = item.sequence;
    follow(leaf, this.shards.tree.leaf(name));
    this.tree.activate(leaf, false);
  }

  itemRemoved(_flow: FlowView, item: ItemView): void {
    this.remove(item);
  }

  dispatched(_flow: FlowView, item: ItemView): void {
    this.remove(item);
  }

  /** The policy has put the request into another queue. */
  moved(item: ItemView): void {
    const place = this.places.get(item);
    if (place === undefined || place.shard === this.shards.shardOf(place.flow, item)) return;
    this.remove(item);
    this.itemAdded(place.flow, item);
  }

  private remove(item: ItemView): void {
    const place = this.places.get(item);
    if (place === undefined) return;
    this.places.delete(item);
    if (this.places.size === 0) this.shards.heldOrders.delete(this);
    place.isWaiting = false;
    const name = String(place.shard);
    const line = this.lines.get(name);
    line?.remove(place);
    const leaf = this.tree.leaf(name);
    const first = line?.peek();
    if (first !== undefined) return void this.tree.renew(leaf, first.sequence);
    this.lines.delete(name);
    this.tree.deactivate(leaf);
    unfollow(this.tree, leaf);
  }
}
