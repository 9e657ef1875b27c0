/** The audit of a controller's state, in place of tests that reach into private fields. */
import { auditDispatcher, type FlowAudit } from '../core/inspect/audit.js';
import { FlowConfigError, type FlowController, type FlowRequest } from '../index.js';

/**
 * Every invariant of a controller's state: waiting requests by request, flow, band and in total; leases and seats;
 * lists of bands and of idle flows; watched deadlines and signals; that nothing is left after `close`. Between
 * operations all must hold, whatever plugins do: a violation is a fault of headgate. O(waiting + flows).
 * @throws FlowConfigError for what is no controller
 *
 * @example
 * assert.deepEqual(audit(flow).violations, []);
 */
export function audit<R extends FlowRequest>(flow: FlowController<R>): FlowAudit {
  const dispatcher: unknown = typeof flow === 'object' && flow !== null ? Reflect.get(flow, 'dispatcher') : undefined;
  if (typeof dispatcher !== 'object' || dispatcher === null) {
    throw new FlowConfigError('audit', [
      { path: 'flow', expected: 'a FlowController', got: flow === null ? 'null' : typeof flow },
    ]);
  }
  return auditDispatcher(dispatcher as Parameters<typeof auditDispatcher>[0]);
}
