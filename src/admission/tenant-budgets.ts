/** A tenant's sheddable requests hold a share of the capacity. Invariant: held = admitted − given back, from 0 up. */
import { pluginOfShape } from '../base/plugin-shape.js';
import { type Definition, define } from '../base/policy-definition.js';
import * as s from '../base/schema/schema.js';
import { type AdmissionPolicy, admissionPolicyShape } from './admission-policy.js';
import { allOf } from './all-of.js';

/** The share of the capacity that each tenant may hold. */
export interface TenantBudgetsOptions {
  /** Fairness ID → share of the capacity, 0…1. Fairness IDs without an entry are not limited. */
  budgets: Readonly<Record<string, number>>;
  /** Requests that the pool can hold, an integer from 1 up: endpoints × the longest batch of each. */
  capacity: number;
  /**
   * `reserve`: reject as soon as the budget is used up. `blis`: reject only above it, so that a tenant holds up to one
   * request more and even a budget of 0 lets one in. @default 'reserve'
   */
  counting?: 'reserve' | 'blis' | undefined;
}

/** A policy that also tells what tenants hold. */
export interface TenantBudgets<R = unknown> extends AdmissionPolicy<R> {
  /** Requests of a tenant with a budget that were admitted and not given back. */
  held(fairnessId: string): number;
}

const parameters = s.object({
  budgets: s.record(s.ratio()),
  capacity: s.positiveInteger(),
  counting: s.optional(s.oneOf('reserve', 'blis'), 'reserve'),
});

/**
 * Rejects priority < 0 of a tenant that holds its budget; the others are never limited, but count. `inner` is asked
 * after it. O(1). Differs from BLIS, which counts from routing on, strictly above the budget. @throws FlowConfigError
 */
export function tenantBudgets<R = unknown>(
  options: TenantBudgetsOptions,
  inner?: AdmissionPolicy<R>,
): TenantBudgets<R> {
  const { budgets, capacity, counting } = s.parse(parameters, options, 'tenantBudgets');
  if (inner !== undefined)
    s.parse(s.object({ inner: pluginOfShape(admissionPolicyShape) }), { inner }, 'tenantBudgets');
  const ofTenant = new Map<string, { readonly maxRequests: number; held: number }>();
  // 0.07 · 100 is 7, not 7.000000000000001.
  for (const [tenant, share] of Object.entries(budgets))
    ofTenant.set(tenant, { maxRequests: Math.round(share * capacity * 1e6) / 1e6, held: 0 });

  const own: TenantBudgets<R> = {
    type: 'tenant-budgets',
    held: (fairnessId) => ofTenant.get(fairnessId)?.held ?? 0,
    admit(_request, { fairnessId, priority }) {
      const budget = ofTenant.get(fairnessId);
      if (budget === undefined) return 'admit';
      const { held, maxRequests } = budget;
      const isUsedUp = counting === 'blis' ? held > maxRequests : held >= maxRequests;
      // The text has no fairness ID, because a client may read it.
      if (priority < 0 && isUsedUp)
        return { reason: `the tenant holds ${held} requests, and its budget is ${maxRequests}` };
      budget.held++;
      return 'admit';
    },
    released(_request, { fairnessId }) {
      const budget = ofTenant.get(fairnessId);
      if (budget !== undefined && budget.held > 0) budget.held--;
    },
  };
  return inner === undefined ? own : { ...own, ...allOf(own, inner), type: own.type };
}

export const tenantBudgetsPlugin: Definition<AdmissionPolicy> = define('tenant-budgets', parameters, (given) =>
  tenantBudgets(given),
);
