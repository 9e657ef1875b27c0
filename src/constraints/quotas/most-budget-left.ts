/** Sends each request to the endpoint whose quotas have most left for it. */
import { configError } from '../../base/faults/flow-config-error.js';
import { type Definition, define } from '../../base/policy-definition.js';
import * as s from '../../base/schema/schema.js';
import type { EndpointPicker } from '../../endpoints/pickers/endpoint-picker.js';
import { mostOf } from '../../endpoints/pickers/least-loaded.js';
import type { ConstraintReferences } from '../../gate/constraint.js';
import type { QuotaDetector } from './quota-detector.js';

const type = 'most-budget-left-picker';

/** The endpoint with the largest share of its tightest quota left; ties: the less loaded. O(endpoints · quotas). */
export function mostBudgetLeft(detector: Pick<QuotaDetector, 'budgetLeft'>): EndpointPicker {
  return {
    type,
    pick: (endpoints, item, nowMs) => mostOf(endpoints, (each) => detector.budgetLeft(each, item, nowMs)),
  };
}

/** Parameters that a configuration file can hold. */
export interface MostBudgetLeftParameters {
  /** The name of the quota detector. @default 'quota-detector' */
  detector?: string | undefined;
}

export const mostBudgetLeftPlugin: Definition<EndpointPicker> = define(
  type,
  s.object({ detector: s.optional(s.text('the name of a quota detector')) }),
  ({ detector: name = 'quota-detector' }: MostBudgetLeftParameters, references: ConstraintReferences) => {
    const detector = references.resolve('constraint', name);
    if ('budgetLeft' in detector) return mostBudgetLeft(detector as QuotaDetector);
    throw configError(type, 'detector', 'the name of a quota detector', `a ${detector.type}`);
  },
);
