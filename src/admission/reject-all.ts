/** Rejects every request: for drills, maintenance, and tests of how clients handle rejections. */
import { withoutParameters } from '../base/policy-definition.js';
import type { AdmissionDefinition, AdmissionPolicy, Refusal } from './admission-policy.js';

const type = 'reject-all';

const refusal: Refusal = { reason: 'every request is refused' };

/** Rejects every request, whatever its priority. Source: BLIS, reject-all. */
export function rejectAll(): AdmissionPolicy {
  return { type, admit: () => refusal };
}

export const rejectAllPlugin: AdmissionDefinition = withoutParameters('admission', type, rejectAll);
