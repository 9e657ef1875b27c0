/** Under overload, only requests of a minimum priority. */
import { type Definition, define } from '../base/policy-definition.js';
import * as s from '../base/schema/schema.js';
import type { PoolView } from '../endpoints/endpoint.js';
import type { AdmissionPolicy } from './admission-policy.js';

/** From which overload on which priorities are rejected. */
export interface TierShedOptions {
  /** The load of an endpoint above which the pool is overloaded, an integer from 0 up. @default 0: any load at all */
  overloadThreshold?: number | undefined;
  /** The lowest priority that is admitted under overload. @default 0: sheddable requests are rejected */
  minAdmitPriority?: number | undefined;
}

const parameters = s.object({
  overloadThreshold: s.optional(s.integer({ from: 0 }), 0),
  minAdmitPriority: s.optional(s.integer(), 0),
});

/**
 * Overload: the busiest endpoint's waiting + running, as reported, + in flight here (what was reported counts twice) is
 * strictly above the threshold. An empty pool is not. O(endpoints). Source: BLIS, tier-shed. @throws FlowConfigError
 */
export function tierShed(options: TierShedOptions = {}): AdmissionPolicy {
  const { overloadThreshold, minAdmitPriority } = s.parse(parameters, options, 'tierShed');
  return {
    type: 'tier-shed',
    admit(_request, { priority }, { pool }) {
      if (priority >= minAdmitPriority) return 'admit';
      const load = highestLoad(pool);
      if (load <= overloadThreshold) return 'admit';
      return { reason: `priority ${priority} is below ${minAdmitPriority}, the lowest admitted at load ${load}` };
    },
  };
}

function highestLoad(pool: PoolView): number {
  let highest = 0;
  for (const { metrics, inFlightRequests } of pool.endpoints) {
    const reported = metrics === undefined ? 0 : metrics.waitingQueueSize + metrics.runningRequests;
    highest = Math.max(highest, inFlightRequests + reported);
  }
  return highest;
}

export const tierShedPlugin: Definition<AdmissionPolicy> = define('tier-shed', parameters, tierShed);
