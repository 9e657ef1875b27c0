/** `headgate/testing`: what tests of hosts and of policies need. It needs no test framework. */
export type { AuditFigures, FlowAudit } from '../core/inspect/audit.js';
export { audit } from './audit.js';
export { admissionPolicyContract } from './contracts/admission-policy.js';
export { bandOrderPolicyContract } from './contracts/band-order-policy.js';
export { constraintContract } from './contracts/constraint.js';
export { type ContractCase, ContractViolation } from './contracts/contract-case.js';
export { endpointFilterContract } from './contracts/endpoint-filter.js';
export { endpointPickerContract } from './contracts/endpoint-picker.js';
export { evictionFilterContract, evictionOrderingContract } from './contracts/eviction.js';
export { fairnessPolicyContract } from './contracts/fairness-policy.js';
export { orderingPolicyContract } from './contracts/ordering-policy.js';
export { saturationDetectorContract } from './contracts/saturation-detector.js';
export { seatListenerContract } from './contracts/seat-listener.js';
export { usageLimitPolicyContract } from './contracts/usage-limit-policy.js';
export { ManualClock } from './manual-clock.js';
