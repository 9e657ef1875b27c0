/** Shares one band by cost: each flow has a leaf in a tree of shares, and the tree says whose turn it is. */
import type { FlowView, ItemView } from '../../views.js';
import type { FlowFairnessPolicy, FlowSelector } from '../fairness-policy.js';
import type { CostMeter } from './cost-meter.js';
import { CostSelector } from './cost-selector.js';
import { heldShares } from './held-shares.js';
import type { Share, ShareOrder } from './share.js';
import { type NamePaths, ShareTree } from './share-tree.js';

/**
 * Invariant: `known` holds the leaves of the flows that the controller has. A leaf is active while one of its flows can
 * be picked, and keeps its place while a flow of it is held back. Flows of one fairness ID share a leaf.
 */
export class CostFairSelector extends CostSelector implements FlowSelector {
  /** The flow asked for last, and its leaf, because each request makes several calls for one flow (bench: fair). */
  private latestFlow: FlowView | undefined = undefined;
  private latestLeaf: Share | undefined = undefined;
  /** The leaf whose last flow left just now: if `dispatched` follows, its request had waited. */
  private leaving: Share | undefined = undefined;
  /** Flows that are held back; they keep their counters, for they wait on. */
  private readonly held = new Set<FlowView>();

  pick(): FlowView | undefined {
    const leaf = this.tree.next();
    const flow = leaf?.firstFlow;
    this.latestFlow = flow;
    this.latestLeaf = leaf;
    return flow;
  }

  forHeld(): FlowSelector {
    return heldShares(this.tree, (flow) => this.leafOf(flow));
  }

  flowActivated(flow: FlowView): void {
    const leaf = this.leafOf(flow);
    this.leaving = undefined;
    const isBack = this.held.size > 0 && this.held.delete(flow);
    if (isBack) this.tree.releaseHeld(leaf);
    this.ledger?.activated(flow, this.weightOf(flow));
    if (!leaf.addFlow(flow)) return;
    leaf.arrival = flow.head?.sequence ?? leaf.arrival;
    this.tree.activate(leaf, !isBack);
  }

  flowDeactivated(flow: FlowView, isParked = false): void {
    const leaf = this.leafOf(flow);
    if (flow.waiting > 0 && !isParked) {
      this.held.add(flow);
      this.tree.hold(leaf);
    }
    this.ledger?.deactivated(flow);
    if (!leaf.isActive || !leaf.removeFlow(flow)) return;
    this.tree.deactivate(leaf);
    this.leaving = leaf;
  }

  itemRemoved(flow: FlowView): void {
    const leaf = this.leafOf(flow);
    this.leaving = undefined;
    if (flow.waiting === 0 && this.held.delete(flow)) this.tree.releaseHeld(leaf);
    if (!leaf.isActive) this.tree.review(leaf);
    else this.tree.renew(leaf, leaf.firstFlow?.head?.sequence);
  }

  dispatched(flow: FlowView, item: ItemView, nowMs: number): void {
    const leaf = this.leafOf(flow);
    const hasWaited = leaf.isActive || this.leaving === leaf;
    this.leaving = undefined;
    leaf.arrival = leaf.firstFlow?.head?.sequence ?? leaf.arrival;
    const cost = this.book.dispatched(leaf, item, flow.weight, nowMs, hasWaited);
    this.ledger?.dispatched(flow.fairnessId, cost, nowMs, hasWaited);
    this.meter.throwFault();
  }

  received(flow: FlowView): number {
    return this.leafOf(flow).received;
  }

  charge(flow: FlowView, cost: number): void {
    this.tree.correct(this.leafOf(flow), cost, this.weightOf(flow));
  }

  lead(flow: FlowView): number {
    return this.tree.lead(this.leafOf(flow), this.weightOf(flow));
  }

  flowRemoved(flow: FlowView): void {
    this.tree.orphan(this.leafOf(flow));
    this.latestFlow = undefined;
    this.latestLeaf = undefined;
  }

  private leafOf(flow: FlowView): Share {
    if (this.latestFlow === flow && this.latestLeaf?.isForgotten === false) return this.latestLeaf;
    const leaf = this.tree.leafOf(flow.fairnessId);
    this.latestFlow = flow;
    this.latestLeaf = leaf;
    return leaf;
  }
}

/** All bands together learn how long answers are; each band counts for itself what its shares received. */
export function costFairPolicy(
  type: string,
  meter: CostMeter,
  orders: readonly (() => ShareOrder)[],
  paths?: NamePaths,
): FlowFairnessPolicy {
  return { type, createSelector: (band) => new CostFairSelector(band, new ShareTree(orders, paths), meter) };
}
