/** The same answer for every request: the queue alone decides, or nothing comes in (drills, maintenance, tests). */
import type { AdmissionPolicy, Rejection } from './admission-policy.js';

/** Admits every request. Source: BLIS, always-admit. */
export function alwaysAdmit(): AdmissionPolicy {
  return { type: 'always-admit', admit: () => 'admit' };
}

const rejection: Rejection = { reason: 'every request is rejected' };

/** Rejects every request, whatever its priority. Source: BLIS, reject-all. */
export function rejectAll(): AdmissionPolicy {
  return { type: 'reject-all', admit: () => rejection };
}
