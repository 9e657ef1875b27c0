/**
 * A fixed number of queues for any number of tenants: each request stands in the least loaded queue of its tenant's
 * hand, and the queues share the band by cost.
 *
 *     tenant ── hand of 8 ──► queue 12: place │ place │ place        one place for each waiting request
 *                             queue 40: place
 *
 * A place is the right of its flow to go. The ordering policy chooses the request of the flow. If that request stands
 * in another queue, the two requests exchange their places. Invariant: every waiting request of a flow that is not held
 * back has one living place; a queue's leaf is active while it has any. Requests of a flow that is held back return to
 * their queues later; these queues keep their counters until then.
 */
import { put } from '../../../base/put.js';
import { FifoQueue } from '../../../base/queues/fifo-queue.js';
import type { Queued } from '../../../base/queues/item-queue.js';
import { textHash } from '../../../base/text-hash.js';
import type { BandView, FlowView, ItemView } from '../../views.js';
import type { FlowSelector } from '../fairness-policy.js';
import type { CostMeter } from './cost-meter.js';
import { CostSelector } from './cost-selector.js';
import { HeldShards } from './held-shards.js';
import type { ShareTree } from './share-tree.js';
import { deal, flowHash } from './shuffle-sharding.js';

/** One queue of the fixed number. */
interface Shard {
  readonly name: string;
  /** The predicted cost of its waiting requests. */
  work: number;
  places: number;
  readonly line: FifoQueue<Place>;
}

interface Place extends Queued {
  isWaiting: boolean;
  readonly flow: FlowView;
  item: ItemView;
  work: number;
  readonly shard: Shard;
}

/** The waiting requests of a flow; forgotten when there are none. */
interface WaitingFlow {
  isHeld: boolean;
  readonly items: Set<ItemView>;
  readonly hand: readonly number[];
}

export class ShardedSelector extends CostSelector implements FlowSelector {
  readonly shards: readonly Shard[];
  readonly flows: Map<FlowView, WaitingFlow> = new Map();
  readonly places: Map<ItemView, Place> = new Map();
  /** The queues of requests that are held back. */
  readonly held: Map<ItemView, Shard> = new Map();
  /** Orders of held flows: they hear when a request comes into another queue. */
  readonly heldOrders: Set<HeldShards> = new Set();
  /** Requests placed so far: where the look through a hand begins, so that equally loaded queues take turns. */
  private placed = 0;
  private picked: Place | undefined = undefined;
  private readonly handSize: number;
  private readonly salt: string;

  constructor(band: BandView, tree: ShareTree, meter: CostMeter, queues: number, handSize: number, salt: string) {
    super(band, tree, meter);
    const shard = (_: unknown, i: number): Shard => ({ name: String(i), work: 0, places: 0, line: new FifoQueue() });
    this.shards = Array.from({ length: queues }, shard);
    this.handSize = handSize;
    this.salt = salt;
  }

  pick(): FlowView | undefined {
    const leaf = this.tree.next();
    this.picked = leaf === undefined ? undefined : this.shards[Number(leaf.name)]?.line.peek();
    return this.picked?.flow;
  }

  forHeld(): FlowSelector {
    return new HeldShards(this);
  }

  itemsOf(flow: FlowView): Iterable<ItemView> {
    return this.flows.get(flow)?.items ?? [];
  }

  shardOf(flow: FlowView, item: ItemView): number {
    const shard = this.places.get(item)?.shard ?? this.held.get(item);
    return shard === undefined ? (this.handOf(flow)[0] as number) : Number(shard.name);
  }

  flowActivated(flow: FlowView): void {
    this.ledger?.activated(flow, this.weightOf(flow));
    const waiting = this.flows.get(flow);
    if (waiting?.isHeld !== true) return;
    waiting.isHeld = false;
    for (const item of waiting.items) this.place(flow, item, waiting);
    this.meter.throwFault();
  }

  flowDeactivated(flow: FlowView, isParked = false): void {
    this.ledger?.deactivated(flow);
    const waiting = this.flows.get(flow);
    if (waiting === undefined || flow.waiting === 0) return;
    waiting.isHeld = true;
    for (const item of waiting.items) {
      if (!isParked) this.hold(item);
      this.leave(item);
    }
  }

  itemAdded(flow: FlowView, item: ItemView): void {
    const made = (): WaitingFlow => ({ isHeld: false, items: new Set(), hand: this.handOf(flow) });
    const waiting = this.flows.get(flow) ?? put(this.flows, flow, made());
    waiting.items.add(item);
    if (!waiting.isHeld) this.place(flow, item, waiting);
    this.meter.throwFault();
  }

  itemRemoved(flow: FlowView, item: ItemView): void {
    this.leave(item);
    this.forgetItem(flow, item);
  }

  dispatched(flow: FlowView, item: ItemView, nowMs: number): void {
    const place = this.places.get(item);
    let cost: number;
    if (place === undefined) {
      const shard = this.leastLoaded(this.flows.get(flow)?.hand ?? this.handOf(flow));
      cost = this.book.dispatched(this.tree.leaf(shard.name), item, flow.weight, nowMs, false);
    } else {
      const { picked } = this;
      const turn = picked?.isWaiting === true && picked.flow === flow ? picked : place;
      if (turn !== place) this.exchange(turn, place);
      this.leave(item);
      cost = this.book.dispatched(this.tree.leaf(turn.shard.name), item, flow.weight, nowMs, true);
    }
    this.ledger?.dispatched(flow.fairnessId, cost, nowMs, place !== undefined);
    this.forgetItem(flow, item);
    this.meter.throwFault();
  }

  handOf({ fairnessId }: FlowView): number[] {
    return deal(flowHash(this.salt, fairnessId), this.shards.length, this.handSize);
  }

  private leastLoaded(hand: readonly number[]): Shard {
    const start = this.placed++ % hand.length;
    let least = this.shards[hand[start] as number] as Shard;
    for (let i = 1; i < hand.length; i++) {
      const shard = this.shards[hand[(start + i) % hand.length] as number] as Shard;
      if (shard.work < least.work) least = shard;
    }
    return least;
  }

  private place(flow: FlowView, item: ItemView, { hand }: WaitingFlow): void {
    const kept = this.held.size > 0 ? this.releaseHeld(item) : undefined;
    const shard = kept ?? this.leastLoaded(hand);
    const work = this.meter.predict(item, this.meter.modelOf(item), textHash(item.fairnessId));
    const place: Place = { isWaiting: true, flow, item, work, shard, sequence: item.sequence };
    this.places.set(item, place);
    this.tellHeld(item);
    shard.line.push(place);
    shard.work += work;
    shard.places++;
    const leaf = this.tree.leaf(shard.name);
    // A request that waits once more may stand before those that were there.
    if (leaf.isActive) return void this.tree.renew(leaf, shard.line.peek()?.sequence);
    leaf.arrival = item.sequence;
    this.tree.activate(leaf, kept === undefined);
  }

  private hold(item: ItemView): void {
    const shard = this.places.get(item)?.shard;
    if (shard === undefined) return;
    this.held.set(item, shard);
    this.tree.hold(this.tree.leaf(shard.name));
  }

  /** The queue in which the request was held back, if it was. */
  private releaseHeld(item: ItemView): Shard | undefined {
    const shard = this.held.get(item);
    if (shard === undefined) return undefined;
    this.held.delete(item);
    this.tree.releaseHeld(this.tree.leaf(shard.name));
    return shard;
  }

  /** Takes the request's place away. */
  private leave(item: ItemView): void {
    const place = this.places.get(item);
    if (place === undefined) return;
    const { shard } = place;
    this.places.delete(item);
    place.isWaiting = false;
    shard.line.remove(place);
    shard.places--;
    // Sums of fractions leave a remainder.
    shard.work = shard.places === 0 ? 0 : shard.work - place.work;
    const leaf = this.tree.leaf(shard.name);
    if (shard.places === 0) this.tree.deactivate(leaf);
    else this.tree.renew(leaf, shard.line.peek()?.sequence);
  }

  /** Afterwards `turn` is the place of the request that goes, and `place` that of the other. */
  private exchange(turn: Place, place: Place): void {
    const { item, work } = turn;
    turn.shard.work += place.work - work;
    place.shard.work += work - place.work;
    turn.item = place.item;
    turn.work = place.work;
    place.item = item;
    place.work = work;
    this.places.set(turn.item, turn);
    this.places.set(place.item, place);
    this.tellHeld(place.item);
  }

  private tellHeld(item: ItemView): void {
    for (const order of this.heldOrders) order.moved(item);
  }

  private forgetItem(flow: FlowView, item: ItemView): void {
    const shard = this.held.size > 0 ? this.releaseHeld(item) : undefined;
    if (shard !== undefined) this.tree.review(this.tree.leaf(shard.name));
    const waiting = this.flows.get(flow);
    if (waiting === undefined) return;
    waiting.items.delete(item);
    if (waiting.items.size === 0) this.flows.delete(flow);
  }
}
