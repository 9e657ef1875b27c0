/**
 * A span for the time that a request waits.
 *
 *     caller's span ──┬── flow_control.wait ──┤ dispatched, or dropped
 *                     └── whatever the caller does next: its context is left alone
 */
import { type Context, context, type Span, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api';
import * as s from '../../base/schema/schema.js';
import type { FlowRequest, ItemView } from '../../index.js';
import type { Observation, ObservedFlow } from '../metrics/labelled-flows.js';
import { attributes, waitSpan } from './instruments.js';

export interface TraceFlowControlOptions<R extends FlowRequest = FlowRequest> {
  /** Makes the spans. */
  tracer: Tracer;
  /** The parent span's context. Requests from inside a plugin or listener queue later. @default the active context */
  contextOf?: ((request: R) => Context) | undefined;
  /** Whether spans have the attribute `flow_control.fairness_id`. @default false */
  fairnessIdAttribute?: boolean | undefined;
}

const optionsSchema = s.object({
  tracer: s.objectWith<Tracer>('a Tracer', 'startSpan'),
  contextOf: s.optional(s.callable<(request: never) => Context>()),
  fairnessIdAttribute: s.optional(s.flag()),
} satisfies Record<keyof TraceFlowControlOptions, unknown>);

/**
 * Makes a span for every request that waits, from now on; one that is dispatched or rejected at once has none. `stop`
 * ends the spans of those that still wait. @throws FlowConfigError that lists every problem
 * @example traceFlowControl(flow, { tracer: trace.getTracer('gateway') });
 */
export function traceFlowControl<R extends FlowRequest>(
  flow: ObservedFlow<R>,
  options: TraceFlowControlOptions<R>,
): Observation {
  s.parse(optionsSchema, options, 'traceFlowControl');
  const { tracer, contextOf = () => context.active(), fairnessIdAttribute = false } = options;
  const spans = new Map<ItemView, Span>();
  const take = (item: ItemView): Span | undefined => {
    const span = spans.get(item);
    if (span !== undefined) spans.delete(item);
    return span;
  };
  const listeners = [
    flow.on('queued', ({ item, waitingInBand }) => {
      const { request, fairnessId, priority } = item;
      const described = {
        [attributes.priority]: priority,
        [attributes.queuePosition]: waitingInBand,
        ...(fairnessIdAttribute && { [attributes.fairnessId]: fairnessId }),
      };
      const options = { kind: SpanKind.INTERNAL, attributes: described };
      spans.set(item, tracer.startSpan(waitSpan, options, contextOf(request)));
    }),
    flow.on('dispatched', ({ item }) => {
      take(item)?.setAttribute(attributes.outcome, 'Dispatched').end();
    }),
    flow.on('dropped', ({ item, outcome: { type, reason } }) => {
      const span = take(item)?.setAttributes({ [attributes.outcome]: type, [attributes.reason]: reason });
      // A client that left is no fault of whoever served it.
      if (reason !== 'cancelled') span?.setStatus({ code: SpanStatusCode.ERROR, message: reason });
      span?.end();
    }),
  ];
  return {
    stop() {
      for (const stop of listeners) stop();
      for (const span of spans.values()) span.end();
    },
  };
}
