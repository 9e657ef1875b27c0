/** The controller's events on `node:diagnostics_channel`, for tools that find them by name. */
import { channel } from 'node:diagnostics_channel';
import * as s from '../../base/schema/schema.js';
import type { FlowController, FlowEvents, FlowRequest } from '../../index.js';

type ObservedFlow<R extends FlowRequest> = Pick<FlowController<R>, 'on'>;

/** The message of a subscriber: the event's payload, and the controller that it comes from. */
export type DiagnosticsMessage<E extends keyof FlowEvents> = FlowEvents[E] & { readonly flow: object };

const events: { readonly [E in keyof FlowEvents]: true } = {
  enqueued: true,
  walked: true,
  queued: true,
  dispatched: true,
  firstToken: true,
  dropped: true,
  evicted: true,
  released: true,
  leaseOverdue: true,
  leaseLost: true,
  gate: true,
  regime: true,
  pluginError: true,
  bandAdded: true,
  bandRemoved: true,
  flowRemoved: true,
};

/**
 * Publishes every event on the channel `headgate:<event>`. Without subscribers it costs its payload and one question.
 * @throws FlowConfigError for something else than a FlowController
 * @example
 * publishDiagnostics(flow);
 * diagnosticsChannel.subscribe('headgate:dropped', ({ outcome }) => log.warn(outcome.reason));
 */
export function publishDiagnostics<R extends FlowRequest>(flow: ObservedFlow<R>): { stop(): void } {
  s.parse(s.objectWith<ObservedFlow<R>>('a FlowController', 'on'), flow, 'publishDiagnostics');
  const stops = Object.keys(events).map((event) => {
    const to = channel(`headgate:${event}`);
    return flow.on(event as keyof FlowEvents, (payload) => {
      if (to.hasSubscribers) to.publish({ ...payload, flow });
    });
  });
  return { stop: () => stops.forEach((stop) => void stop()) };
}
