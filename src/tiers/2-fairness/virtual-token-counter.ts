/** Fair by cost: the tenant that has received least for its weight goes next; and two presets of where one begins. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import { costFairPolicy } from './by-cost/cost-fair-selector.js';
import { CostMeter } from './by-cost/cost-meter.js';
import { type CostOptions, costCodeShape, costOptions, costParameters, costShape } from './by-cost/cost-options.js';
import { type Lift, VirtualCounters } from './by-cost/virtual-counters.js';
import type { FairnessPolicy, FlowFairnessPolicy } from './fairness-policy.js';

interface LiftOption {
  /**
   * Where a flow begins whose first request comes: at the largest counter picked so far (`floor`), at the least counter
   * of those that wait (`vtc`, as the paper has it), or at its own (`none`). @default 'floor'
   */
  lift?: Lift | undefined;
}

export interface VirtualTokenCounterOptions extends CostOptions, LiftOption {}

const type = 'virtual-token-counter-fairness-policy';
const typeOfStartTimes = 'start-time-fair-queueing-fairness-policy';
const typeOfLeastService = 'least-service-fairness-policy';

const lift = s.optional(s.oneOf('floor', 'vtc', 'none'), 'floor');

const fileParameters = s.object(s.withKeys(costShape, { lift }));
const codeOptions = s.object(s.withKeys(costCodeShape, { lift }));

/**
 * Shares a band by tokens: the flow with the least cost received per weight goes next, costs being charged at dispatch
 * by prediction and put right at the end. While two flows wait, what they received differs by no more than one request
 * of each and what is mispredicted of the requests in flight. O(log flows); a pick O(1). Memory follows the flows that
 * wait, run or are ahead of the rest. Source: Sheng et al., "Fairness in Serving Large Language Models" (OSDI '24).
 * @throws FlowConfigError
 * @example const fairness = virtualTokenCounter({ promptTokenPrice: 1, completionTokenPrice: 3 });
 */
export function virtualTokenCounter(options: VirtualTokenCounterOptions = {}): FlowFairnessPolicy {
  const { lift: chosen, ...costs } = s.parse(codeOptions, options, 'virtualTokenCounter');
  return costFairPolicy(type, new CostMeter(costs), [() => new VirtualCounters(chosen)]);
}

/**
 * Start-time fair queueing by cost: a flow that returns begins at the largest start tag dispatched. The bound holds at
 * any rate. Source: Goyal, Vin and Cheng, "Start-time Fair Queueing" (SIGCOMM '96). @throws FlowConfigError
 */
export function startTimeFairQueueing(options: CostOptions = {}): FlowFairnessPolicy {
  const costs = s.parse(costOptions, options, 'startTimeFairQueueing');
  return costFairPolicy(typeOfStartTimes, new CostMeter(costs), [() => new VirtualCounters('floor')]);
}

/**
 * Least service: no flow is lifted, so that idle ones, and new fairness IDs, make up for it at the expense of the
 * others. Only for fairness IDs that clients cannot choose. @throws FlowConfigError
 */
export function leastService(options: CostOptions = {}): FlowFairnessPolicy {
  const costs = s.parse(costOptions, options, 'leastService');
  return costFairPolicy(typeOfLeastService, new CostMeter(costs), [() => new VirtualCounters('none')]);
}

export const virtualTokenCounterPlugin: Definition<FairnessPolicy> = define(type, fileParameters, virtualTokenCounter);

export const startTimeFairQueueingPlugin: Definition<FairnessPolicy> = define(
  typeOfStartTimes,
  costParameters,
  startTimeFairQueueing,
);

export const leastServicePlugin: Definition<FairnessPolicy> = define(typeOfLeastService, costParameters, leastService);
