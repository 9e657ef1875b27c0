/** Everybody comes in: the queue alone decides. */
import type { AdmissionPolicy } from './admission-policy.js';

/** Admits every request. Source: BLIS, always-admit. */
export function alwaysAdmit(): AdmissionPolicy {
  return { type: 'always-admit', admit: () => 'admit' };
}
