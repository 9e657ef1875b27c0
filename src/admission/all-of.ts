/** Several policies in a row: a request comes in when all of them admit it. */
import { pluginOfShape } from '../base/plugin-shape.js';
import * as s from '../base/schema/schema.js';
import { type AdmissionPolicy, admissionPolicyShape } from './admission-policy.js';

/**
 * Calls the policies in order. The first rejection wins; those that had admitted get the request back (`released`), the
 * last first. One that throws counts as admitting; its error is thrown unless one rejects. @throws FlowConfigError
 */
export function allOf<R = unknown>(...policies: readonly AdmissionPolicy<R>[]): AdmissionPolicy<R> {
  s.parse(s.list(pluginOfShape(admissionPolicyShape)), policies, 'allOf');
  return {
    type: 'all-of',
    admit(request, key, view) {
      const faults: unknown[] = [];
      for (const [index, policy] of policies.entries()) {
        const answer = contained(() => policy.admit(request, key, view), faults);
        if (answer === undefined || answer === 'admit') continue;
        for (const earlier of policies.slice(0, index).reverse())
          contained(() => earlier.released?.(request, key, undefined, view.nowMs), faults);
        // An answer that is no rejection stays as it is, for the controller to report.
        return typeof answer?.reason === 'string' ? { ...answer, policy: answer.policy ?? policy.type } : answer;
      }
      if (faults.length > 0) throw faults[0];
      return 'admit';
    },
    released(request, key, usage, nowMs) {
      const faults: unknown[] = [];
      for (const policy of policies) contained(() => policy.released?.(request, key, usage, nowMs), faults);
      if (faults.length > 0) throw faults[0];
    },
  };
}

/** Keeps a fault of one policy from the others. */
function contained<T>(call: () => T, faults: unknown[]): T | undefined {
  try {
    return call();
  } catch (error) {
    faults.push(error);
    return undefined;
  }
}
