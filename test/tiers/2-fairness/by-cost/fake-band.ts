/**
 * A band of flows in arrival order that calls a selector as the controller does, and counts what each flow received.
 */
import type { FlowFairnessPolicy, ItemView, Usage } from '../../../../src/index.js';
import { CostFairSelector } from '../../../../src/tiers/2-fairness/by-cost/cost-fair-selector.js';
import { ShardedSelector } from '../../../../src/tiers/2-fairness/by-cost/sharded-selector.js';
import type { ShareTree } from '../../../../src/tiers/2-fairness/by-cost/share-tree.js';
import type { Ending, FlowSelector } from '../../../../src/tiers/2-fairness/fairness-policy.js';
import type { BandView, FlowView } from '../../../../src/types/index.js';
import { fakeItem } from '../../../support/fake-item.js';

export class FakeFlow implements FlowView {
  readonly priority = 0;
  readonly queue: ItemView[] = [];
  isHeld = false;
  inFlight = 0;
  readonly fairnessId: string;
  readonly weight: number;

  constructor(fairnessId: string, weight: number) {
    this.fairnessId = fairnessId;
    this.weight = weight;
  }

  get waiting(): number {
    return this.queue.length;
  }

  get waitingBytes(): number {
    return this.queue.length;
  }

  get head(): ItemView | undefined {
    return this.queue[0];
  }
}

export interface Running {
  readonly flow: FakeFlow;
  readonly item: ItemView;
}

export class FakeBand implements BandView {
  readonly priority = 0;
  nowMs = 0;
  readonly flows = new Map<string, FakeFlow>();
  readonly selector: FlowSelector;
  private sequence = 0;
  /** Tells the selector of every flow that falls idle, as a controller with `flowIdleTimeout` 0 does. */
  private readonly collects: boolean;
  private readonly weights: Readonly<Record<string, number>>;

  constructor(
    policy: FlowFairnessPolicy,
    { collects = false, weights = {} }: { collects?: boolean; weights?: Record<string, number> } = {},
  ) {
    this.collects = collects;
    this.weights = weights;
    this.selector = policy.createSelector(this);
  }

  get waiting(): number {
    return [...this.flows.values()].reduce((sum, { waiting }) => sum + waiting, 0);
  }

  get waitingBytes(): number {
    return this.waiting;
  }

  get firstActive(): FlowView | undefined {
    return undefined;
  }

  activeFlows(): Iterable<FlowView> {
    return [...this.flows.values()].filter(({ waiting, isHeld }) => waiting > 0 && !isHeld);
  }

  flow(fairnessId: string): FakeFlow {
    let flow = this.flows.get(fairnessId);
    if (flow === undefined) {
      flow = new FakeFlow(fairnessId, this.weights[fairnessId] ?? 1);
      this.flows.set(fairnessId, flow);
    }
    return flow;
  }

  private makeItem(fairnessId: string, figures: Partial<ItemView>): ItemView {
    return fakeItem({ tokens: 1, ...figures, fairnessId, sequence: this.sequence++, enqueuedAtMs: this.nowMs });
  }

  add(fairnessId: string, figures: Partial<ItemView> = {}): ItemView {
    const flow = this.flow(fairnessId);
    const item = this.makeItem(fairnessId, figures);
    flow.queue.push(item);
    if (flow.waiting === 1) this.selector.flowActivated?.(flow);
    this.selector.itemAdded?.(flow, item);
    return item;
  }

  /** A request that finds nothing in its way. */
  pass(fairnessId: string, figures: Partial<ItemView> = {}): Running {
    const flow = this.flow(fairnessId);
    const item = this.makeItem(fairnessId, figures);
    flow.inFlight++;
    this.selector.dispatched?.(flow, item, this.nowMs);
    return { flow, item };
  }

  /** Lets the next request go; undefined when nothing can. */
  serve(): Running | undefined {
    const flow = this.selector.pick(this.nowMs) as FakeFlow | undefined;
    if (flow === undefined) return undefined;
    if (flow.waiting === 0 || flow.isHeld) throw new Error(`${flow.fairnessId} cannot be picked`);
    const item = flow.queue.shift() as ItemView;
    flow.inFlight++;
    if (flow.waiting === 0) this.selector.flowDeactivated?.(flow);
    this.selector.dispatched?.(flow, item, this.nowMs);
    return { flow, item };
  }

  report({ flow, item }: Running, total: Usage): void {
    this.selector.consumed?.(flow, total, this.nowMs, item, total);
  }

  settle({ flow, item }: Running, usage: Usage, ending: Ending = 'released'): void {
    flow.inFlight--;
    this.selector.settled?.(flow, usage, this.nowMs, item.tokens, item, ending);
    this.collect(flow);
  }

  /** The request waits once more, in the place that its arrival gives it. */
  requeue(running: Running, usage: Usage): void {
    const { flow, item } = running;
    flow.inFlight--;
    this.selector.settled?.(flow, usage, this.nowMs, item.tokens, item, 'requeued');
    const again = { ...item };
    flow.queue.push(again);
    flow.queue.sort((a, b) => a.sequence - b.sequence);
    if (flow.waiting === 1) this.selector.flowActivated?.(flow);
    this.selector.itemAdded?.(flow, again);
  }

  cancel(fairnessId: string, index: number): void {
    const flow = this.flow(fairnessId);
    const [item] = flow.queue.splice(index, 1);
    if (item === undefined) return;
    if (flow.waiting === 0 && !flow.isHeld) this.selector.flowDeactivated?.(flow);
    if (flow.waiting === 0) flow.isHeld = false;
    this.selector.itemRemoved?.(flow, item);
    this.collect(flow);
  }

  hold(fairnessId: string): void {
    const flow = this.flow(fairnessId);
    if (flow.waiting === 0 || flow.isHeld) return;
    flow.isHeld = true;
    this.selector.flowDeactivated?.(flow);
  }

  releaseHeld(fairnessId: string): void {
    const flow = this.flow(fairnessId);
    if (!flow.isHeld) return;
    flow.isHeld = false;
    this.selector.flowActivated?.(flow);
  }

  collect(flow: FakeFlow, isForced = this.collects): void {
    if (!isForced || flow.waiting > 0 || flow.inFlight > 0 || this.flows.get(flow.fairnessId) !== flow) return;
    this.flows.delete(flow.fairnessId);
    this.selector.flowRemoved?.(flow);
  }
}

/** What a policy that shares by cost keeps of its flows. */
export function treeOf({ selector }: { selector: FlowSelector }): ShareTree {
  if (selector instanceof CostFairSelector || selector instanceof ShardedSelector) return selector.tree;
  throw new Error('the policy keeps no shares');
}

/** The selector of `shuffleSharded`. */
export function shardedOf({ selector }: FakeBand): ShardedSelector {
  if (selector instanceof ShardedSelector) return selector;
  throw new Error('the policy has no queues of its own');
}

/** What a request of known cost consumed, prompts costing 1 a token. */
export function usage(cost: number): Usage {
  return { promptTokens: cost, completionTokens: 0 };
}

/** The fairness IDs of all that waits, in the order in which it goes. */
export function serveAll(band: FakeBand): string {
  const order: string[] = [];
  for (let served = band.serve(); served !== undefined; served = band.serve()) order.push(served.flow.fairnessId);
  return order.join(' ');
}
