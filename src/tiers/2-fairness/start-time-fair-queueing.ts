/** Start-time fair queueing by cost: a flow that returns begins at the virtual time. */
import { parse } from '../../base/schema/parse.js';
import { costFairPolicy } from './by-cost/cost-fair-policy.js';
import { type CostOptions, type CostParameters, costOptions, costParameters } from './by-cost/cost-options.js';
import { VirtualCounters } from './by-cost/virtual-counters.js';
import type { FairnessDefinition, FlowFairnessPolicy } from './fairness-policy.js';

const type = 'start-time-fair-queueing-fairness-policy';

/**
 * Start-time fair queueing by cost: the same counters, and a flow that returns begins at the largest start tag
 * dispatched so far. The bound holds whatever the rate at which the gate opens. Source: Goyal, Vin and Cheng,
 * "Start-time Fair Queueing" (SIGCOMM '96).
 * @throws FlowConfigError
 */
export function startTimeFairQueueing(options: CostOptions = {}): FlowFairnessPolicy {
  const costs = parse(costOptions, options, 'startTimeFairQueueing');
  return costFairPolicy(type, costs, () => new VirtualCounters('floor'));
}

export const startTimeFairQueueingPlugin: FairnessDefinition<CostParameters> = {
  kind: 'fairness',
  type,
  parameters: costParameters,
  create: startTimeFairQueueing,
};
