/** Plain least service: whoever received least so far goes next, and nothing is forgiven. */
import { parse } from '../../base/schema/parse.js';
import { costFairPolicy } from './by-cost/cost-fair-policy.js';
import { type CostOptions, type CostParameters, costOptions, costParameters } from './by-cost/cost-options.js';
import { VirtualCounters } from './by-cost/virtual-counters.js';
import type { FairnessDefinition, FlowFairnessPolicy } from './fairness-policy.js';

const type = 'least-service-fairness-policy';

/**
 * Plain least service: the same counters, but no flow is lifted. A flow that was idle makes up for it at the expense of
 * the others, and so does every new fairness ID. Only for fairness IDs that clients cannot choose.
 * @throws FlowConfigError
 */
export function leastService(options: CostOptions = {}): FlowFairnessPolicy {
  const costs = parse(costOptions, options, 'leastService');
  return costFairPolicy(type, costs, () => new VirtualCounters('none'));
}

export const leastServicePlugin: FairnessDefinition<CostParameters> = {
  kind: 'fairness',
  type,
  parameters: costParameters,
  create: leastService,
};
