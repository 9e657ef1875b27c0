/**
 * Requests are counted from outside, by those who send them, and inside by OpenTelemetry: both must have seen the same.
 */
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { expect, it, onTestFinished } from 'vitest';
import { loadGatewayConfig } from '../../../src/gateway/index.js';
import { openTelemetryMetrics } from '../../../src/observability/opentelemetry/index.js';
import { fileOf, startGateway } from '../../gateway/support/gateway.js';
import { serve, startUpstream } from '../../gateway/support/upstream.js';
import { until } from '../../integration/support/until.js';

type Received = Parameters<typeof serve>[0];

function readerOf(): { meterProvider: MeterProvider; total(name: string, outcome?: string): Promise<number> } {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e9 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  onTestFinished(() => meterProvider.shutdown());
  return {
    meterProvider,
    async total(name, outcome) {
      const { resourceMetrics } = await reader.collect();
      const points = resourceMetrics.scopeMetrics
        .flatMap(({ metrics }) => metrics)
        .filter(({ descriptor }) => descriptor.name === name)
        .flatMap(({ dataPoints }): readonly DataPoint<unknown>[] => dataPoints)
        .filter(({ attributes }) => outcome === undefined || attributes['flow_control.outcome'] === outcome);
      return points.reduce(
        (sum, { value }) => sum + (typeof value === 'number' ? value : (value as Histogram).count),
        0,
      );
    },
  };
}

it('counts every request once, whatever happens to clients, servers and limits', async () => {
  const held: Received[] = [];
  let isHolding = true;
  const answer = (received: Received): void => {
    if (isHolding) held.push(received);
    else serve(received, 0);
  };
  const servers = await Promise.all([startUpstream(answer), startUpstream(answer)]);
  const urls = servers.map(({ url }) => url);
  const file = (of: readonly string[], maxRequests = 1000): object =>
    fileOf(of, {
      retry: { enabled: false },
      flowControl: { maxRequests, defaultRequestTTL: '60s', saturationDetector: { pluginRef: 'concurrency-detector' } },
    });
  const { gateway, post } = await startGateway(file(urls));
  const { meterProvider, total } = readerOf();
  openTelemetryMetrics(gateway.flow, { meterProvider });

  const statuses: Promise<number>[] = [];
  const send = (count: number, signal: AbortSignal | null = null): void => {
    for (let index = 0; index < count; index++) {
      statuses.push(post({ model: 'llama', messages: [] }, { signal }).then(({ status }) => status, () => 0)); // biome-ignore format: one answer
    }
  };
  const seen = (): number => gateway.flow.stats().enqueued;

  send(12);
  await until('two run, ten wait', () => held.length === 2 && gateway.flow.stats().waiting === 10);
  expect((await total('flow_control.requests')) + (await total('flow_control.queue.size'))).toBe(12);

  const left = new AbortController();
  send(7, left.signal);
  await until('seven more wait', () => gateway.flow.stats().waiting === 17);
  left.abort();
  await until('they have left', () => gateway.flow.stats().waiting === 10);

  gateway.reconfigure(loadGatewayConfig(file([])));
  send(3);
  await until('three came while there was no server', () => seen() === 22);
  gateway.reconfigure(loadGatewayConfig(file(urls, 13)));
  send(20);
  await until('no more fit', () => seen() === 42);

  isHolding = false;
  for (const received of held) serve(received, 0);
  const answers = await Promise.all(statuses);
  await until('all is over', () => gateway.flow.stats().inFlight === 0);

  const count = (...wanted: number[]): number => answers.filter((status) => wanted.includes(status)).length;
  expect(await total('flow_control.requests')).toBe(42);
  expect(await total('flow_control.queue.duration')).toBe(42);
  expect(await total('flow_control.requests', 'Dispatched')).toBe(count(200));
  expect(await total('flow_control.requests', 'EvictedContextCancelled')).toBe(7);
  expect(count(0)).toBe(7);
  expect(await total('flow_control.requests', 'RejectedCapacity')).toBe(count(429));
  expect(count(429)).toBeGreaterThan(10);
  for (const name of ['flow_control.queue.size', 'flow_control.queue.payload', 'flow_control.in_flight'])
    expect(await total(name)).toBe(0);
});
