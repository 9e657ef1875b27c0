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
      const faults = new Faults();
      for (const [index, policy] of policies.entries()) {
        const answer = faults.guard(() => policy.admit(request, key, view));
        if (answer === undefined || answer === 'admit') continue;
        for (const earlier of policies.slice(0, index).reverse())
          faults.guard(() => earlier.released?.(request, key, undefined, view.nowMs));
        // An answer that is no rejection stays as it is, for the controller to report.
        return typeof answer?.reason === 'string' ? { ...answer, policy: answer.policy ?? policy.type } : answer;
      }
      faults.rethrow();
      return 'admit';
    },
    released(request, key, usage, nowMs) {
      const faults = new Faults();
      for (const policy of policies) faults.guard(() => policy.released?.(request, key, usage, nowMs));
      faults.rethrow();
    },
  };
}

/** Keeps a fault of one policy from the others, and remembers the first fault. */
class Faults {
  private first: { readonly error: unknown } | undefined = undefined;

  guard<T>(call: () => T): T | undefined {
    try {
      return call();
    } catch (error) {
      this.first ??= { error };
      return undefined;
    }
  }

  rethrow(): void {
    if (this.first !== undefined) throw this.first.error;
  }
}
