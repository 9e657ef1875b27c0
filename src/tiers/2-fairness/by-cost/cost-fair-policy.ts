/** A policy that shares a band by cost: every fairness ID is a share of the band, or of the names above it. */
import type { FlowFairnessPolicy } from '../fairness-policy.js';
import { CostFairSelector } from './cost-fair-selector.js';
import type { CostMeter } from './cost-meter.js';
import type { ShareOrder } from './share.js';
import { type NamePaths, ShareTree } from './share-tree.js';

/** All bands together learn how long answers are; each band counts for itself what its shares received. */
export function costFairPolicy(
  type: string,
  meter: CostMeter,
  orders: readonly (() => ShareOrder)[],
  paths?: NamePaths,
): FlowFairnessPolicy {
  return { type, createSelector: (band) => new CostFairSelector(band, new ShareTree(orders, paths), meter) };
}
