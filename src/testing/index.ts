/** `headgate/testing`: what tests of hosts and of policies need. It needs no test framework. */
export type { AuditFigures, FlowAudit } from '../core/inspect/audit.js';
export { audit } from './audit.js';
export { ManualClock } from './manual-clock.js';
