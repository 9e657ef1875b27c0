/** Rejects every request: for drills, maintenance, and tests of how clients handle rejections. */
import { withoutParameters } from '../base/policy-definition.js';
import type { AdmissionDefinition, AdmissionPolicy, Rejection } from './admission-policy.js';

const type = 'reject-all';

const rejection: Rejection = { reason: 'every request is rejected' };

/** Rejects every request, whatever its priority. Source: BLIS, reject-all. */
export function rejectAll(): AdmissionPolicy {
  return { type, admit: () => rejection };
}

export const rejectAllPlugin: AdmissionDefinition = withoutParameters('admission', type, rejectAll);
