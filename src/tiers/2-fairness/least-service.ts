/** Plain least service: whoever received least so far goes next, and nothing is forgiven. */
import { object } from '../../base/schema/containers.js';
import { parse } from '../../base/schema/parse.js';
import { costFairPolicy } from './by-cost/cost-fair-policy.js';
import { type CostOptions, type CostParameters, costCodeShape, costShape } from './by-cost/cost-options.js';
import { VirtualCounters } from './by-cost/virtual-counters.js';
import type { FairnessDefinition, FlowFairnessPolicy } from './fairness-policy.js';

const type = 'least-service-fairness-policy';

const fileParameters = object(costShape);
const codeOptions = object(costCodeShape);

/**
 * Plain least service: the same counters, but no flow is lifted. A flow that was idle makes up for it at the expense of
 * the others, and so does every new fairness ID. Only for fairness IDs that clients cannot choose.
 * @throws FlowConfigError
 */
export function leastService(options: CostOptions = {}): FlowFairnessPolicy {
  const costs = parse(codeOptions, options, 'leastService');
  return costFairPolicy(type, costs, () => new VirtualCounters('none'));
}

export const leastServicePlugin: FairnessDefinition<CostParameters> = {
  kind: 'fairness',
  type,
  parameters: fileParameters,
  create: leastService,
};
