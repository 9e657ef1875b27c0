/** Nobody comes in: for drills, maintenance, and tests of what clients do when they are refused. */
import type { AdmissionPolicy, Refusal } from './admission-policy.js';

const refusal: Refusal = { reason: 'every request is refused' };

/** Refuses every request, whatever its priority. Source: BLIS, reject-all. */
export function rejectAll(): AdmissionPolicy {
  return { type: 'reject-all', admit: () => refusal };
}
