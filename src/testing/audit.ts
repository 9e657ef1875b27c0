/** The audit of a controller's state, in place of tests that reach into private fields. */
import { auditOf, type FlowAudit } from '../core/inspect/audit.js';
import { FlowConfigError, type FlowController, type FlowRequest } from '../index.js';

/**
 * Every invariant of a controller's state: waiting requests by request, queue, flow, band and in total; leases, seats
 * and what may be evicted; lists of bands and of idle flows; watched deadlines and signals; that nothing is left after
 * `close`. Between operations all must hold, whatever plugins do: a violation is a fault of headgate. O(waiting +
 * flows). @throws FlowConfigError for what is no controller
 * @example assert.deepEqual(audit(flow).violations, []);
 */
export function audit<R extends FlowRequest>(flow: FlowController<R>): FlowAudit {
  const found = auditOf(flow);
  if (found === undefined) {
    throw new FlowConfigError('audit', [
      { path: 'flow', expected: 'a FlowController', got: flow === null ? 'null' : typeof flow },
    ]);
  }
  return found;
}
