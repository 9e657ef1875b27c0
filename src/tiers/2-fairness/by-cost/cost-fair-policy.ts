/** A policy of one level: every fairness ID is a share of the band. */
import type { FlowFairnessPolicy } from '../fairness-policy.js';
import { CostFairSelector } from './cost-fair-selector.js';
import { CostMeter } from './cost-meter.js';
import type { CostOptions } from './cost-options.js';
import type { ShareOrder } from './share.js';
import { ShareTree } from './share-tree.js';

export function costFairPolicy(type: string, costs: CostOptions, makeOrder: () => ShareOrder): FlowFairnessPolicy {
  // What answers come to is learnt by all bands together; what was received is counted in each.
  const meter = new CostMeter(costs);
  const { charge = 'predict' } = costs;
  return {
    type,
    createSelector: () => new CostFairSelector(new ShareTree([makeOrder]), meter, charge, (tree, { fairnessId }) => tree.leaf(fairnessId)),
  };
}
