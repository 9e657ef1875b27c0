/** `headgate/testing`: what tests of hosts and of policies need. It needs no test framework. */
export type { AuditFigures, FlowAudit } from '../core/inspect/audit.js';
export { audit } from './audit.js';
export { admissionPolicyContract } from './contracts/admission-policy.js';
export { bandOrderPolicyContract, usageLimitPolicyContract } from './contracts/bands.js';
export { type ContractCase, ContractViolation } from './contracts/contract-case.js';
export { endpointFilterContract, endpointPickerContract } from './contracts/endpoints.js';
export { evictionFilterContract, evictionOrderingContract } from './contracts/eviction.js';
export { fairnessPolicyContract } from './contracts/fairness-policy.js';
export { orderingPolicyContract } from './contracts/ordering-policy.js';
export { saturationDetectorContract } from './contracts/saturation-detector.js';
export { constraintContract, seatListenerContract } from './contracts/seat-listener.js';
export { ManualClock } from './manual-clock.js';
