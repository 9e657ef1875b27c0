/**
 * Orders flows that are held back together by the counters that they have in the tree of their policy: the least goes
 * first, on each level.
 *
 *     tree of the policy     share 'acme' ── leaf 'key 1' ── flow        counters are charged here
 *                               │ followers       │
 *     tree of the held       stand-in ────── stand-in ─── flow           and copied to here
 *
 * Invariant: a stand-in has the counter of its share. It exists while a flow below it is among those that are ordered;
 * such a flow waits, so that its share is remembered.
 */
import type { FlowView } from '../../views.js';
import type { FlowSelector } from '../fairness-policy.js';
import type { Share } from './share.js';
import { ShareTree } from './share-tree.js';
import { VirtualCounters } from './virtual-counters.js';

/** A tree for stand-ins of the shares of `tree`. They are never lifted: what their shares were lifted to counts. */
export function treeOfStandIns({ levels, paths }: ShareTree): ShareTree {
  const orders = Array.from({ length: levels }, () => () => new VirtualCounters('none'));
  return new ShareTree(orders, paths);
}

/** Makes a leaf and the shares above it follow those of another tree, if they do not yet. O(levels). */
export function follow(standIn: Share, share: Share): void {
  let above: Share | undefined = share;
  for (let own: Share | undefined = standIn; own !== undefined && above !== undefined; own = own.siblings.owner) {
    if (own.standsFor !== undefined) return;
    own.standsFor = above;
    own.counter = above.counter;
    above.followers ??= [];
    above.followers.push(own);
    above = above.siblings.owner;
  }
}

/** Removes a stand-in that is idle, and those above it that have no other below them. */
export function unfollow(tree: ShareTree, standIn: Share): void {
  tree.orphan(standIn);
  for (let own: Share | undefined = standIn; own?.isForgotten === true; own = own.siblings.owner) {
    const { standsFor } = own;
    own.standsFor = undefined;
    if (standsFor === undefined) continue;
    const left = standsFor.followers?.filter((other) => other !== own);
    standsFor.followers = left?.length === 0 ? undefined : left;
  }
}

/** `leafOf` finds the flow's leaf in the tree of the policy. */
export function heldShares(ofPolicy: ShareTree, leafOf: (flow: FlowView) => Share): FlowSelector {
  const tree = treeOfStandIns(ofPolicy);

  function lookAtFirst({ fairnessId }: FlowView): void {
    const standIn = tree.leafOf(fairnessId);
    if (standIn.isActive) tree.renew(standIn, standIn.firstFlow?.head?.sequence);
  }

  return {
    pick: () => tree.next()?.firstFlow,
    flowActivated(flow) {
      const standIn = tree.leafOf(flow.fairnessId);
      follow(standIn, leafOf(flow));
      if (!standIn.addFlow(flow)) return;
      standIn.arrival = flow.head?.sequence ?? standIn.arrival;
      tree.activate(standIn, false);
    },
    flowDeactivated(flow) {
      const standIn = tree.leafOf(flow.fairnessId);
      if (standIn.removeFlow(flow)) tree.deactivate(standIn);
    },
    itemAdded: lookAtFirst,
    itemRemoved: lookAtFirst,
    dispatched: lookAtFirst,
    flowRemoved(flow) {
      const standIn = tree.leafOf(flow.fairnessId);
      if (!standIn.isActive) unfollow(tree, standIn);
    },
  };
}
