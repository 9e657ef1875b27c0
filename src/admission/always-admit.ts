/** Admits every request, so that the queue alone decides. */
import { withoutParameters } from '../base/policy-definition.js';
import type { AdmissionDefinition, AdmissionPolicy } from './admission-policy.js';

const type = 'always-admit';

/** Admits every request. Source: BLIS, always-admit. */
export function alwaysAdmit(): AdmissionPolicy {
  return { type, admit: () => 'admit' };
}

export const alwaysAdmitPlugin: AdmissionDefinition = withoutParameters('admission', type, alwaysAdmit);
