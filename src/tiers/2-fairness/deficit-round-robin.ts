/** Fair by cost in rounds: O(1) for any number of tenants, at the price of waits of up to a round. */
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import { costFairPolicy } from './by-cost/cost-fair-selector.js';
import { CostMeter } from './by-cost/cost-meter.js';
import { type CostOptions, costCodeShape, costShape, mostCost } from './by-cost/cost-options.js';
import { DeficitRounds } from './by-cost/deficit-rounds.js';
import type { FairnessPolicy, FlowFairnessPolicy } from './fairness-policy.js';

const type = 'deficit-round-robin-fairness-policy';

/** Smaller quanta, and larger ones, could not be told from none and from infinity beside costs of up to 2^53. */
const quantumRange = { from: 1e-6, to: mostCost };

interface QuantumOption {
  /** Cost per weight of a round, from 1e-6 to 2^53. @default the largest cost of late, by weights above 1 */
  quantum?: number | undefined;
}

export interface DeficitRoundRobinOptions extends CostOptions, QuantumOption {}

const quantum = s.optional(s.number(quantumRange));

const fileParameters = s.object(s.withKeys(costShape, { quantum }));
const codeOptions = s.object(s.withKeys(costCodeShape, { quantum }));

/**
 * Shares a band by tokens in rounds. In each round a flow may use one quantum per weight, and goes on until it is used
 * up. If it used more, it sits out rounds until that is paid for. While two flows wait, what they received per weight
 * differs by no more than a quantum and one request of each, and what is mispredicted. O(1) amortized while the quantum
 * is no less than the largest cost, otherwise O(log flows). Source: Shreedhar and Varghese, "Efficient Fair Queuing
 * using Deficit Round Robin" (SIGCOMM '95), in the surplus form. @throws FlowConfigError
 */
export function deficitRoundRobin(options: DeficitRoundRobinOptions = {}): FlowFairnessPolicy {
  const { quantum: given, ...costs } = s.parse(codeOptions, options, 'deficitRoundRobin');
  return costFairPolicy(type, new CostMeter(costs), [() => new DeficitRounds(given)]);
}

export const deficitRoundRobinPlugin: Definition<FairnessPolicy> = define(type, fileParameters, deficitRoundRobin);
