/**
 * Spans for the time that a request waits, and for all of its way.
 *
 *     caller's span ──┬── flow_control.request ──┬── flow_control.wait ──┤ dispatched, or dropped
 *                     │                          └── queued · dispatched · first token ──┤ released, or dropped
 *                     └── whatever the caller does next: its context is left alone
 */
import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import * as s from '../../base/schema/schema.js';
import type { FlowRequest, ItemView, Lease } from '../../index.js';
import { modelIn, type Observation, type ObservedFlow } from '../metrics/labelled-flows.js';
import { genAiAttributes } from './gen-ai.js';
import { attributes, requestSpan, waitSpan } from './instruments.js';

export interface TraceFlowControlOptions<R extends FlowRequest = FlowRequest> {
  /** Makes the spans. */
  tracer: Tracer;
  /** The parent span's context. Requests from inside a plugin or listener queue later. @default the active context */
  contextOf?: ((request: R) => Context) | undefined;
  /** Whether every request has a span until its lease is released, besides that of its wait. @default false */
  requestSpans?: boolean | undefined;
  /** The model of a request. @default its field `model` */
  modelOf?: ((request: R) => string | undefined) | undefined;
  /** Whether spans have the attribute `flow_control.fairness_id`. @default false */
  fairnessIdAttribute?: boolean | undefined;
}

const optionsSchema = s.object({
  tracer: s.objectWith<Tracer>('a Tracer', 'startSpan'),
  contextOf: s.optional(s.callable<(request: never) => Context>()),
  requestSpans: s.optional(s.flag()),
  modelOf: s.optional(s.callable<(request: never) => string | undefined>()),
  fairnessIdAttribute: s.optional(s.flag()),
} satisfies Record<keyof TraceFlowControlOptions, unknown>);

/**
 * Makes a span for every request that waits, from now on; one that is dispatched or rejected at once has none, but for
 * `requestSpans`. `stop` ends the spans that are open.
 * @throws FlowConfigError that lists every problem
 * @example traceFlowControl(flow, { tracer: trace.getTracer('gateway') });
 */
export function traceFlowControl<R extends FlowRequest>(
  flow: ObservedFlow<R>,
  options: TraceFlowControlOptions<R>,
): Observation {
  s.parse(optionsSchema, options, 'traceFlowControl');
  const { tracer, contextOf = () => context.active(), fairnessIdAttribute = false, requestSpans = false } = options;
  const modelOf: (request: R) => string | undefined = options.modelOf ?? modelIn;
  const waits = new Map<ItemView, Span>();
  /** Until its dispatch, a request is known by its item, and then by its lease. */
  const requests = new Map<ItemView | Lease, Span>();
  const start = (name: string, { fairnessId, priority }: ItemView, more: Attributes, parent: Context): Span => {
    const fairness = fairnessIdAttribute && { [attributes.fairnessId]: fairnessId };
    const described = { [attributes.priority]: priority, ...fairness, ...more };
    return tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes: described }, parent);
  };
  const startRequest = (item: ItemView, request: R, parent: Context = contextOf(request)): Span => {
    const model = modelOf(request);
    const named = { ...genAiAttributes(request), ...(model !== undefined && { [attributes.model]: model }) };
    return start(requestSpan, item, named, parent);
  };
  const drop = (span: Span | undefined, type: string, reason: string): void => {
    span?.setAttributes({ [attributes.outcome]: type, [attributes.reason]: reason });
    // A client that left is no fault of whoever served it.
    if (reason !== 'cancelled') span?.setStatus({ code: SpanStatusCode.ERROR, message: reason });
    span?.end();
  };
  const listeners = [
    flow.on('queued', ({ item, waitingInBand }) => {
      let parent = contextOf(item.request);
      if (requestSpans) {
        const span = startRequest(item, item.request, parent).addEvent('queued');
        requests.set(item, span.setAttribute(attributes.cameAt, waitingInBand));
        parent = trace.setSpan(parent, span);
      }
      waits.set(item, start(waitSpan, item, { [attributes.queuePosition]: waitingInBand }, parent));
    }),
    flow.on('dispatched', ({ item, lease, queuedMs }) => {
      take(waits, item)?.setAttribute(attributes.outcome, 'Dispatched').end();
      if (!requestSpans) return;
      const span = take(requests, item) ?? startRequest(item, item.request);
      const told = { [attributes.outcome]: 'Dispatched', [attributes.waited]: queuedMs / 1000 };
      requests.set(lease, span.addEvent('dispatched').setAttributes(told));
    }),
    flow.on('dropped', ({ item, request, outcome: { type, reason } }) => {
      drop(take(waits, item), type, reason);
      if (requestSpans) drop(take(requests, item) ?? startRequest(item, request), type, reason);
    }),
    ...(requestSpans
      ? [
          flow.on('firstToken', ({ lease, afterMs }) => {
            requests
              .get(lease)
              ?.addEvent('first token')
              .setAttribute(attributes.firstChunk, afterMs / 1000);
          }),
          flow.on('released', ({ lease, usage: { promptTokens, completionTokens } }) => {
            const isReported = promptTokens + completionTokens > 0;
            const usage = { [attributes.inputTokens]: promptTokens, [attributes.outputTokens]: completionTokens };
            take(requests, lease)
              ?.setAttributes(isReported ? usage : {})
              .end();
          }),
        ]
      : []),
  ];
  return {
    stop() {
      for (const stop of listeners) stop();
      for (const span of [...waits.values(), ...requests.values()]) span.end();
    },
  };
}

function take<K>(spans: Map<K, Span>, key: K): Span | undefined {
  const span = spans.get(key);
  if (span !== undefined) spans.delete(key);
  return span;
}
