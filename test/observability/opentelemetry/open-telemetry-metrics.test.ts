import { metrics as api } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { afterEach, describe, expect, it } from 'vitest';
import { FlowConfigError, inFlightEviction, quotaDetector, sessionLimit, shadow } from '../../../src/index.js';
import { openTelemetryMetrics } from '../../../src/observability/opentelemetry/index.js';
import { key, leaseOf, makeFlow, request, runNow } from '../../support/flow.js';

function collector() {
  const reader = new PeriodicExportingMetricReader({
    exporter: new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE),
    exportIntervalMillis: 1e9,
  });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const collect = async () => {
    const { resourceMetrics } = await reader.collect();
    const metrics = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    return new Map(metrics.map((metric) => [metric.descriptor.name, metric]));
  };
  const points = async (name: string) =>
    ((await collect()).get(name)?.dataPoints ?? []).map(({ attributes, value }) => [attributes, value]);
  return { meterProvider, collect, points };
}

afterEach(() => api.disable());

describe('openTelemetryMetrics', () => {
  it('records waits in seconds in the buckets of the reference and more, with error.type on drops only', async () => {
    const { meterProvider, collect } = collector();
    const { flow, clock } = makeFlow();
    openTelemetryMetrics(flow, { meterProvider, pool: 'llama' });
    runNow(flow);
    const expired = flow.enqueue({ ...request, ttlMs: 300 }, key('a', 5));
    clock.advance(300);
    await expired;
    const durations = (await collect()).get('flow_control.queue.duration');
    expect(durations?.descriptor).toMatchObject({ unit: 's' });
    const points = (durations?.dataPoints ?? []).map(({ attributes, value }) => ({
      attributes,
      value: value as unknown as { sum: number; buckets: { boundaries: number[] } },
    }));
    expect(points.map(({ attributes, value }) => [attributes, value.sum])).toEqual([
      [{ 'flow_control.pool': 'llama', 'flow_control.priority': 0, 'flow_control.outcome': 'Dispatched' }, 0],
      [
        {
          'flow_control.pool': 'llama',
          'flow_control.priority': 5,
          'flow_control.outcome': 'EvictedTTL',
          'error.type': 'ttl-expired',
        },
        0.3,
      ],
    ]);
    expect(points[0]?.value.buckets.boundaries.slice(-6)).toEqual([12.5, 15, 20, 30, 45, 60]);
  });

  it('records the time to the first token by model, from dispatch, once for each request that had one', async () => {
    const { meterProvider, collect } = collector();
    const { flow, clock } = makeFlow();
    openTelemetryMetrics(flow, { meterProvider, pool: 'p' });
    const chat = { ...request, model: 'llama' };
    const lease = leaseOf(await flow.enqueue(chat, key()));
    const named = (await collect()).get('gen_ai.server.time_to_first_token');
    expect(named?.dataPoints ?? []).toEqual([]);
    clock.advance(250);
    lease.report({ promptTokens: 5 });
    lease.report({ completionTokens: 1 });
    lease.report({ completionTokens: 2 });
    const found = (await collect()).get('gen_ai.server.time_to_first_token');
    expect(found?.dataPoints).toMatchObject([{ value: { sum: 0.25, count: 1 } }]);
    expect(found?.dataPoints[0]?.attributes).toEqual({
      ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'llama' },
      'flow_control.pool': 'p',
    });
    lease.release();
  });

  it('records how long a request took, and each token after the first report of some', async () => {
    const { meterProvider, collect } = collector();
    const { flow, clock } = makeFlow({ saturationDetector: () => 0 });
    const unseen = runNow(flow);
    openTelemetryMetrics(flow, { meterProvider });
    const stream = leaseOf(await flow.enqueue({ ...request, model: 'llama' } as never, key()));
    const whole = leaseOf(await flow.enqueue(request, key()));
    const untold = leaseOf(await flow.enqueue(request, key()));
    clock.advance(500);
    stream.report({ completionTokens: 2 });
    clock.advance(1500);
    stream.report({ completionTokens: 32 });
    // It came in one piece: when its tokens were made is not known.
    whole.report({ completionTokens: 40 });
    for (const lease of [unseen, stream, whole, untold]) lease.release();
    const [durations, tokenTimes] = [
      (await collect()).get('gen_ai.server.request.duration'),
      (await collect()).get('gen_ai.server.time_per_output_token'),
    ];
    expect([durations?.descriptor.unit, tokenTimes?.descriptor.unit]).toEqual(['s', 's']);
    const named = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai' };
    expect(durations?.dataPoints.map(({ attributes, value }) => [attributes, value])).toMatchObject([
      [
        { ...named, 'gen_ai.request.model': 'llama' },
        { sum: 2, count: 1 },
      ],
      [named, { sum: 4, count: 2 }],
    ]);
    expect(tokenTimes?.dataPoints).toMatchObject([
      { attributes: { ...named, 'gen_ai.request.model': 'llama' }, value: { sum: 0.05, count: 1 } },
    ]);
    const boundsOf = (metric: typeof durations): unknown => Object(metric?.dataPoints[0]?.value).buckets.boundaries;
    expect(boundsOf(durations)).toEqual(Array.from({ length: 14 }, (_, i) => 2 ** i / 100));
    expect(boundsOf(tokenTimes)).toEqual([0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]);
  });

  it('says of an evicted request that it was, and of its tokens nothing', async () => {
    const { meterProvider, points, collect } = collector();
    const { flow, clock } = makeFlow({ eviction: inFlightEviction() });
    openTelemetryMetrics(flow, { meterProvider });
    const victim = leaseOf(await flow.enqueue(request, key('a', -1)));
    victim.report({ completionTokens: 1 });
    clock.advance(100);
    victim.report({ completionTokens: 9 });
    void flow.enqueue(request, key('b', 10));
    expect(victim.isEvicted).toBe(true);
    victim.release();
    const [[of] = []] = await points('gen_ai.server.request.duration');
    expect(of).toMatchObject({ 'error.type': 'evicted' });
    expect((await collect()).get('gen_ai.server.time_per_output_token')?.dataPoints ?? []).toEqual([]);
  });

  it('keeps few values of operations and providers, whatever requests say of themselves', async () => {
    const { meterProvider, points } = collector();
    const { flow } = makeFlow({ saturationDetector: () => 0 });
    openTelemetryMetrics(flow, { meterProvider });
    for (let i = 0; i < 600; i++) {
      const lease = leaseOf(await flow.enqueue({ ...request, operation: `o${i}`, provider: `p${i}` } as never, key()));
      lease.report({ completionTokens: 1 });
      lease.release();
    }
    const told = (await points('gen_ai.server.time_to_first_token')).map(([of]) => Object.values(of as object));
    expect(told).toHaveLength(501);
    expect(told.at(-1)).toEqual(['other', 'other']);
  });

  it('records waits in the buckets that the host wants', async () => {
    const { meterProvider, collect } = collector();
    const { flow } = makeFlow();
    openTelemetryMetrics(flow, { meterProvider, queueDurationBuckets: [1, 10] });
    runNow(flow);
    const [point] = (await collect()).get('flow_control.queue.duration')?.dataPoints ?? [];
    expect(point?.value).toMatchObject({ buckets: { boundaries: [1, 10] } });
  });

  it('says of shadow mode what would have been, and nothing of it otherwise', async () => {
    const { meterProvider, points } = collector();
    const { flow } = makeFlow({ mode: shadow(), limits: { maxRequests: 1 } });
    openTelemetryMetrics(flow, { meterProvider });
    for (const id of ['a', 'b', 'c']) flow.tryEnqueue(request, key(id));
    expect(await points('flow_control.shadow')).toEqual([[{}, 1]]);
    expect(await points('flow_control.shadow.passed')).toEqual([[{}, 3]]);
    expect(await points('flow_control.shadow.would_have_waited')).toEqual([[{}, 1]]);
    expect(await points('flow_control.shadow.would_have_been_dropped')).toEqual([
      [{ 'flow_control.outcome': 'RejectedCapacity', 'error.type': 'global-max-requests' }, 1],
    ]);
    expect(await points('flow_control.shadow.would_have_been_evicted')).toEqual([[{}, 0]]);
    const other = collector();
    openTelemetryMetrics(makeFlow().flow, { meterProvider: other.meterProvider });
    expect(await other.points('flow_control.shadow')).toEqual([]);
  });

  it('reads gauges from the controller when somebody collects', async () => {
    const { meterProvider, points } = collector();
    const { flow } = makeFlow({
      limits: { maxRequests: 8, maxBytes: Number.POSITIVE_INFINITY },
      bands: [{ priority: 0, limits: { maxRequests: 4 } }],
    });
    openTelemetryMetrics(flow, { meterProvider });
    runNow(flow);
    void flow.enqueue(request, key());
    const band = { 'flow_control.priority': 0 };
    expect(await points('flow_control.queue.size')).toEqual([[band, 1]]);
    expect(await points('flow_control.queue.payload')).toEqual([[band, 10]]);
    expect(await points('flow_control.in_flight')).toEqual([[{}, 1]]);
    expect(await points('flow_control.saturation')).toEqual([[{}, 1]]);
    expect(await points('flow_control.global_capacity.utilization')).toEqual([
      [{ 'flow_control.resource': 'requests' }, 0.125],
    ]);
    expect((await points('flow_control.capacity.utilization'))[0]).toEqual([
      { ...band, 'flow_control.resource': 'requests' },
      0.25,
    ]);
    expect(await points('flow_control.fairness.index')).toEqual([]);
  });

  it('tells quotas by group, unit and span, sessions by their state, and what waits at caps', async () => {
    const { meterProvider, points } = collector();
    const { flow } = makeFlow({
      constraints: [
        quotaDetector({
          travel: 0,
          groups: [
            {
              name: 'account',
              quotas: [
                { unit: 'requests', limit: 100, window: 'sliding' },
                { unit: 'requests', limit: 1000, per: '24h', window: 'sliding' },
              ],
            },
          ],
        }),
        sessionLimit({ by: 'fairnessId', maxSessions: 1 }),
      ],
      bands: [{ priority: 0, maxInFlightPerFlow: 1 }],
    });
    openTelemetryMetrics(flow, { meterProvider, pool: 'hosted' });
    const lease = runNow(flow, { fairnessId: 'a' });
    void flow.enqueue(request, key('a'));
    void flow.enqueue(request, key('b'));
    const pool = { 'flow_control.pool': 'hosted' };
    const quota = {
      ...pool,
      'flow_control.quota.group': 'account',
      'flow_control.quota.unit': 'requests',
      'flow_control.quota.learnt': false,
    };
    const [minute, day] = [60, 86_400].map((per) => ({ ...quota, 'flow_control.quota.per': per }));
    expect(await points('flow_control.quota.limit')).toEqual([
      [minute, 100],
      [day, 1000],
    ]);
    expect((await points('flow_control.quota.reserved')).map(([, value]) => value)).toEqual([1, 1]);
    lease.answered({ status: 429, headers: { 'retry-after': '20' } });
    lease.release();
    expect((await points('flow_control.quota.used')).map(([, value]) => value)).toEqual([1, 1]);
    expect((await points('flow_control.quota.wait')).map(([, value]) => value)).toEqual([20, 20]);
    expect((await points('flow_control.quota.reset')).map(([, value]) => value)).toEqual([60, 86_400]);
    expect(await points('flow_control.quota.refusals')).toEqual([[pool, 1]]);
    expect(await points('flow_control.quota.unreported')).toEqual([[pool, 0]]);
    expect(await points('flow_control.quota.ignored')).toEqual([[pool, 0]]);
    expect(await points('flow_control.sessions')).toEqual([
      [{ ...pool, 'flow_control.session.state': 'running' }, 0],
      [{ ...pool, 'flow_control.session.state': 'idle' }, 1],
      [{ ...pool, 'flow_control.session.state': 'waiting' }, 1],
    ]);
    expect(await points('flow_control.session.tokens')).toEqual([[pool, 1]]);
    expect(await points('flow_control.sessions.expired')).toEqual([[pool, 0]]);
    expect(await points('flow_control.capped')).toEqual([[{ ...pool, 'flow_control.priority': 0 }, 0]]);
  });

  it('tells fairness IDs only when asked to, and then only so many', async () => {
    const { meterProvider, points } = collector();
    const { flow } = makeFlow();
    openTelemetryMetrics(flow, { meterProvider, fairnessIdAttribute: true, maxFairnessIds: 2 });
    runNow(flow, { fairnessId: 'a' });
    for (const name of ['b', 'c', 'd']) void flow.enqueue(request, key(name));
    const sizes = await points('flow_control.queue.size');
    expect(
      sizes.map(([attributes, value]) => [Reflect.get(attributes as object, 'flow_control.fairness_id'), value]),
    ).toEqual([
      ['b', 1],
      ['other', 2],
    ]);
  });

  it('tells a flow that is gone as 0, because SDKs repeat what was told last', async () => {
    const { meterProvider, points } = collector();
    const { flow } = makeFlow();
    openTelemetryMetrics(flow, { meterProvider, fairnessIdAttribute: true });
    const lease = runNow(flow);
    void flow.enqueue(request, key('a'));
    const sizes = async () => (await points('flow_control.queue.size')).map(([, value]) => value);
    expect(await sizes()).toEqual([1]);
    lease.release();
    expect(await sizes()).toEqual([0]);
  });

  it('uses the meter it is given, or the global provider', async () => {
    const given = collector();
    const { flow } = makeFlow();
    openTelemetryMetrics(flow, { meter: given.meterProvider.getMeter('mine') });
    const global = collector();
    api.setGlobalMeterProvider(global.meterProvider);
    openTelemetryMetrics(flow);
    runNow(flow);
    expect(await given.points('flow_control.in_flight')).toEqual([[{}, 1]]);
    expect(await global.points('flow_control.in_flight')).toEqual([[{}, 1]]);
  });

  it('adds nothing after stop', async () => {
    const { meterProvider, points } = collector();
    const { flow } = makeFlow();
    const metrics = openTelemetryMetrics(flow, { meterProvider });
    runNow(flow).release();
    metrics.stop();
    runNow(flow);
    expect((await points('flow_control.requests')).map(([, value]) => value)).toEqual([1]);
    expect(await points('flow_control.in_flight')).toEqual([]);
  });

  it('lists everything that is wrong with its options', () => {
    const wrong = { meter: 1, meterProvider: {}, pool: 0, fairnessIdAttribute: 'no', maxFairnessIds: -1, prefix: '' };
    expect(() => openTelemetryMetrics(makeFlow().flow, wrong as never)).toThrow(FlowConfigError);
    expect(() => openTelemetryMetrics(makeFlow().flow, wrong as never)).toThrow(
      /meter: .*\n.*meterProvider: .*\n.*pool: .*\n.*fairnessIdAttribute: .*\n.*maxFairnessIds: .*\n.*prefix: /,
    );
  });
});
