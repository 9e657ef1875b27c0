/** Flow control as an undici interceptor: the call goes to the dispatcher below once it has its lease. */
import type { Dispatcher } from 'undici';
import { FlowConfigError } from '../../index.js';
import type { AdapterGate, FlowControlOptions, HttpFlowRequest } from '../http/adapter-options.js';
import { HttpFlowControl } from '../http/http-flow-control.js';
import type { RequestFlow } from '../http/request-flow.js';
import { OutboundCall } from './outbound-call.js';

/** The `context` that `request`, `stream` and `pipeline` give back; `flow` is missing on calls that were skipped. */
export interface FlowContext {
  readonly flow?: RequestFlow | undefined;
}

/**
 * An interceptor that holds a call until it is dispatched. The lease is in the `context` of the result, and is released
 * when the response has arrived or has failed; with `releaseOn: 'manual'` by the caller, who can report usage first.
 * Calls that are aborted leave the queue at once; an eviction aborts the call. A dropped call fails with a
 * FlowControlError, or with `onDrop: 'respond'` gets the answer of the error contract as its response.
 * @throws FlowConfigError for options that cannot be right.
 * @example
 * const dispatcher = new Agent().compose(flowControl(flow, { classify: ({ path }) => ({ fairnessId: path }) }));
 * await request('http://model-server/v1/completions', { dispatcher, method: 'POST', body });
 */
export function flowControl(
  flow: AdapterGate<HttpFlowRequest<Dispatcher.DispatchOptions>>,
  options: Omit<FlowControlOptions<Dispatcher.DispatchOptions>, 'context' | 'waiting'> = {},
): Dispatcher.DispatcherComposeInterceptor {
  if ('context' in options) {
    const expected = 'no such option: a call has no handler that would run in it';
    throw new FlowConfigError('flowControl options', [{ path: 'context', expected, got: 'one' }]);
  }
  const control = new HttpFlowControl(flow, { ...options, onDrop: options.onDrop ?? 'throw' });
  return (dispatch) =>
    function flowControlDispatch(opts, handler) {
      const call = new OutboundCall(opts, handler, dispatch);
      const verdict = control.judge(call.req, call);
      if ('then' in verdict) void verdict.then((awaited) => call.follow(awaited));
      else call.follow(verdict);
      return call.hasRoom;
    };
}
