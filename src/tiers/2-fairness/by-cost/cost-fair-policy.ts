/** A policy of one level: every fairness ID is a share of the band. */
import type { FlowFairnessPolicy } from '../fairness-policy.js';
import { CostFairSelector, type LeafOf } from './cost-fair-selector.js';
import { CostMeter } from './cost-meter.js';
import type { CostOptions } from './cost-options.js';
import { ServiceLedger } from './service-ledger.js';
import type { ShareOrder } from './share.js';
import { ShareTree } from './share-tree.js';

export function costFairPolicy(type: string, costs: CostOptions, makeOrder: () => ShareOrder): FlowFairnessPolicy {
  // All bands together learn how long answers are; each band counts for itself what its shares received.
  const meter = new CostMeter(costs);
  const { charge = 'predict' } = costs;
  return {
    type,
    createSelector: (band) => {
      const tree = new ShareTree([makeOrder]);
      const leafOf: LeafOf = (shares, { fairnessId }) => shares.leaf(fairnessId);
      return new CostFairSelector(band, tree, meter, charge, leafOf, (nowMs) => new ServiceLedger(nowMs));
    },
  };
}
