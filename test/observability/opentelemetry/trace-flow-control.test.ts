import { AsyncLocalStorage } from 'node:async_hooks';
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { FlowConfigError, inFlightEviction } from '../../../src/index.js';
import { traceFlowControl } from '../../../src/observability/opentelemetry/index.js';
import { key, leaseOf, makeFlow, request, runNow } from '../../support/flow.js';

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
const tracer = provider.getTracer('test');

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});
afterEach(() => exporter.reset());
afterAll(() => context.disable());

function waits() {
  return exporter.getFinishedSpans().filter(({ name }) => name === 'flow_control.wait');
}

/** The name of the active span, as a handler would see it. */
function activeName(): unknown {
  return Reflect.get(trace.getActiveSpan() ?? {}, 'name');
}

describe('traceFlowControl', () => {
  it('makes a span under the caller’s for a request that waits, and none for one that does not', async () => {
    const { flow } = makeFlow();
    traceFlowControl(flow, { tracer });
    const lease = runNow(flow);
    const pending = tracer.startActiveSpan('POST /v1', async (parent) => {
      const outcome = await flow.enqueue(request, key('tenant-a', 5));
      expect(activeName()).toBe('POST /v1');
      parent.end();
      return outcome;
    });
    expect(waits()).toEqual([]);
    lease.release();
    await pending;
    const [span, ...others] = waits();
    const parent = exporter.getFinishedSpans().find(({ name }) => name === 'POST /v1');
    expect(others).toEqual([]);
    expect(span?.parentSpanContext?.spanId).toBe(parent?.spanContext().spanId);
    expect(span?.spanContext().traceId).toBe(parent?.spanContext().traceId);
    expect(span?.kind).toBe(SpanKind.INTERNAL);
    expect(span?.attributes).toEqual({
      'flow_control.priority': 5,
      'flow_control.queue.position': 1,
      'flow_control.outcome': 'Dispatched',
    });
    expect(span?.status.code).toBe(SpanStatusCode.UNSET);
  });

  it('says how a request was dropped; a client that left is no error', async () => {
    const { flow, clock } = makeFlow();
    traceFlowControl(flow, { tracer, fairnessIdAttribute: true });
    runNow(flow);
    const abort = new AbortController();
    const pending = [
      flow.enqueue({ ...request, ttlMs: 10 }, key('a')),
      flow.enqueue({ ...request, signal: abort.signal }, key('b')),
    ];
    abort.abort();
    clock.advance(10);
    await Promise.all(pending);
    expect(waits().map(({ attributes, status }) => [attributes, status.code])).toEqual([
      [
        {
          'flow_control.priority': 0,
          'flow_control.queue.position': 2,
          'flow_control.fairness_id': 'b',
          'flow_control.outcome': 'EvictedContextCancelled',
          'error.type': 'cancelled',
        },
        SpanStatusCode.UNSET,
      ],
      [
        {
          'flow_control.priority': 0,
          'flow_control.queue.position': 1,
          'flow_control.fairness_id': 'a',
          'flow_control.outcome': 'EvictedTTL',
          'error.type': 'ttl-expired',
        },
        SpanStatusCode.ERROR,
      ],
    ]);
  });

  it('makes a span of its own for each of many waiters, each with its context', async () => {
    const { flow } = makeFlow();
    const storage = new AsyncLocalStorage<string>();
    traceFlowControl(flow, { tracer });
    let lease = runNow(flow);
    const seen: unknown[] = [];
    const names = Array.from({ length: 20 }, (_, i) => `caller-${i}`);
    const pending = names.map((name) =>
      storage.run(name, () =>
        tracer.startActiveSpan(name, async (span) => {
          lease = leaseOf(await flow.enqueue(request, key(name)));
          seen.push([activeName(), storage.getStore()]);
          span.end();
        }),
      ),
    );
    for (const each of pending) {
      storage.run('releaser', () => tracer.startActiveSpan('releaser', () => lease.release()));
      await each;
    }
    expect(seen).toEqual(names.map((name) => [name, name]));
    const parents = waits().map(({ parentSpanContext }) => parentSpanContext?.spanId);
    const callers = exporter.getFinishedSpans().filter(({ name }) => name.startsWith('caller-'));
    expect(parents).toEqual(callers.map((caller) => caller.spanContext().spanId));
  });

  it('finds the caller of a request that was handed in from inside a listener by contextOf', async () => {
    const { flow } = makeFlow();
    const parents = new WeakMap<object, ReturnType<typeof context.active>>();
    traceFlowControl(flow, { tracer, contextOf: (of) => parents.get(of) ?? context.active() });
    const lease = runNow(flow);
    let isFirst = true;
    let late: Promise<unknown> | undefined;
    flow.on('queued', () => {
      if (!isFirst) return;
      isFirst = false;
      late = tracer.startActiveSpan('inner', (span) => {
        const own = { byteSize: 1 };
        parents.set(own, context.active());
        span.end();
        return flow.enqueue(own, key('inner', 9));
      });
    });
    const outer = tracer.startActiveSpan('outer', (span) => {
      span.end();
      return flow.enqueue(request, key('outer'));
    });
    lease.release();
    leaseOf((await late) as never).release();
    await outer;
    const idOf = (name: string) =>
      exporter
        .getFinishedSpans()
        .find((span) => span.name === name)
        ?.spanContext().spanId;
    expect(waits().map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual([idOf('inner'), idOf('outer')]);
  });

  it('gives a request that is put back a span for each wait', async () => {
    const { flow } = makeFlow({ eviction: inFlightEviction() });
    traceFlowControl(flow, { tracer });
    const victim = runNow(flow, { priority: -1 });
    const important = flow.enqueue(request, key('a', 9));
    const again = victim.requeue();
    leaseOf(await important).release();
    await again;
    expect(waits().map(({ attributes }) => attributes['flow_control.priority'])).toEqual([9, -1]);
  });

  it('starts a trace of its own where there is none', async () => {
    const { flow } = makeFlow();
    traceFlowControl(flow, { tracer });
    const lease = runNow(flow);
    const pending = context.with(ROOT_CONTEXT, () => flow.enqueue(request, key()));
    lease.release();
    await pending;
    expect(waits().map(({ parentSpanContext }) => parentSpanContext)).toEqual([undefined]);
  });

  it('ends open spans when it is stopped, and makes none afterwards', () => {
    const { flow } = makeFlow();
    const tracing = traceFlowControl(flow, { tracer });
    runNow(flow);
    void flow.enqueue(request, key());
    tracing.stop();
    void flow.enqueue(request, key());
    expect(waits()).toHaveLength(1);
  });

  it('rejects what is no tracer', () => {
    expect(() => traceFlowControl(makeFlow().flow, { tracer: {} } as never)).toThrow(FlowConfigError);
  });
});

describe('the span of a request', () => {
  const spans = () => exporter.getFinishedSpans().filter(({ name }) => name === 'flow_control.request');
  const chat = { ...request, model: 'llama' };
  const eventsOf = (index = 0): string[] | undefined => spans()[index]?.events.map(({ name }) => name);

  it('lasts until the lease is released, and tells of the queue, the model, the first token and the usage', async () => {
    const { flow, clock } = makeFlow();
    traceFlowControl(flow, { tracer, requestSpans: true });
    const first = runNow(flow);
    const pending = flow.enqueue(chat, key('tenant-a', 5));
    clock.advance(1500);
    first.release();
    const lease = leaseOf(await pending);
    clock.advance(250);
    lease.report({ promptTokens: 100, completionTokens: 1 });
    clock.advance(250);
    lease.report({ completionTokens: 7 });
    expect(eventsOf(1)).toBeUndefined();
    lease.release();
    expect([eventsOf(0), eventsOf(1)]).toEqual([['dispatched'], ['queued', 'dispatched', 'first token']]);
    expect(spans()[1]?.attributes).toEqual({
      'flow_control.priority': 5,
      'flow_control.outcome': 'Dispatched',
      ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'llama' },
      'gen_ai.response.time_to_first_chunk': 0.25,
      'gen_ai.usage.input_tokens': 100,
      'gen_ai.usage.output_tokens': 7,
      'headgate.queue.duration': 1.5,
      'headgate.queue.position': 1,
    });
    expect(waits()[0]?.parentSpanContext?.spanId).toBe(spans()[1]?.spanContext().spanId);
  });

  it('says nothing of tokens that nobody reported, and names the model by the option', () => {
    const { flow } = makeFlow();
    traceFlowControl(flow, { tracer, requestSpans: true, modelOf: () => 'mine' });
    runNow(flow).release();
    expect(spans()[0]?.attributes).toEqual({
      ...{ 'flow_control.priority': 0, 'flow_control.outcome': 'Dispatched' },
      ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'mine' },
      'headgate.queue.duration': 0,
    });
  });

  it('ends with a drop, also of a request that was never queued, and with the observation', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 1 } });
    const { stop } = traceFlowControl(flow, { tracer, requestSpans: true });
    const lease = runNow(flow);
    void flow.enqueue(chat, key());
    await flow.enqueue(chat, key());
    expect(spans()[0]?.attributes).toMatchObject({
      ...{ 'flow_control.outcome': 'RejectedCapacity', 'error.type': 'global-max-requests' },
      'gen_ai.request.model': 'llama',
    });
    expect(spans()[0]?.status.code).toBe(SpanStatusCode.ERROR);
    stop();
    expect(spans()).toHaveLength(3);
    lease.release();
  });
});
