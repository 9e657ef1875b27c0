/**
 * A random history, scraped after every step by prom-client and by OpenTelemetry: both must say what the controller
 * says.
 */
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import {
  concurrencyDetector,
  FlowController,
  inFlightEviction,
  type Lease,
  type Outcome,
  roundRobin,
} from '../../../src/index.js';
import { openTelemetryMetrics } from '../../../src/observability/opentelemetry/index.js';
import { prometheusMetrics } from '../../../src/observability/prometheus/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { Random } from '../../property/random.js';
import { turns } from '../../support/flow.js';
import { scrape, select, sum } from './exposition.js';

type Step = 'come' | 'release' | 'abort' | 'wait' | 'shrink' | 'requeue';

const step = fc.record({
  kind: fc.constantFrom<Step>('come', 'come', 'come', 'release', 'abort', 'wait', 'shrink', 'requeue'),
  salt: fc.nat(),
});

class Host {
  readonly clock = new ManualClock();
  readonly flow = new FlowController<{ byteSize: number; model: string; signal: AbortSignal }>({
    saturationDetector: concurrencyDetector({ maxConcurrency: 2 }),
    clock: this.clock,
    limits: { maxRequests: 12, maxBytes: 500 },
    overflow: 'displace',
    eviction: inFlightEviction(),
    defaultBand: { fairness: roundRobin() },
    defaultRequestTtl: 400,
    flowIdleTimeout: 300,
    bandIdleTimeout: 900,
  });
  sent = 0;
  readonly leases: Lease[] = [];
  readonly aborts: AbortController[] = [];

  async perform(kind: Step, random: Random): Promise<void> {
    if (kind === 'come') for (let i = random.int(4); i >= 0; i--) this.come(random);
    else if (kind === 'release') this.leases.splice(0, 1)[0]?.release();
    else if (kind === 'abort') this.aborts.splice(random.int(this.aborts.length + 1), 1)[0]?.abort();
    else if (kind === 'wait') this.clock.advance(random.int(350));
    else if (kind === 'shrink') this.flow.reconfigure({ limits: { maxRequests: random.int(15), maxBytes: 500 } });
    else this.requeue();
    await turns();
  }

  private come(random: Random): void {
    const abort = new AbortController();
    this.aborts.push(abort);
    this.sent++;
    const request = { byteSize: random.int(80), model: random.pick(['llama', 'qwen']), signal: abort.signal };
    void this.keep(
      this.flow.enqueue(request, { fairnessId: `tenant-${random.int(6)}`, priority: random.pick([-1, 0, 5]) }),
    );
  }

  /** A request that is put back comes a second time. */
  private requeue(): void {
    const index = this.leases.findIndex((lease) => lease.isEvicted);
    const [victim] = index < 0 ? [] : this.leases.splice(index, 1);
    if (victim === undefined) return;
    this.sent++;
    void this.keep(victim.requeue());
  }

  private async keep(pending: Promise<Outcome>): Promise<void> {
    const outcome = await pending;
    if (outcome.type === 'Dispatched') this.leases.push(outcome.lease);
  }
}

async function play(steps: readonly { kind: Step; salt: number }[], hasModels: boolean): Promise<void> {
  const host = new Host();
  const register = new Registry();
  prometheusMetrics(host.flow, { register, maxFairnessIds: 4, ...(hasModels && { modelName: ({ model }) => model }) });
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e9 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  openTelemetryMetrics(host.flow, { meterProvider, fairnessIdAttribute: true, maxFairnessIds: 4 });

  for (const { kind, salt } of steps) {
    await host.perform(kind, new Random(salt));
    const series = await scrape(register);
    const stats = host.flow.stats();
    expect(series.filter(({ value }) => !(value >= 0))).toEqual([]);
    expect(sum(select(series, 'queue_size'))).toBe(stats.waiting);
    expect(sum(select(series, 'queue_bytes'))).toBe(stats.waitingBytes);
    expect(sum(select(series, 'in_flight_requests'))).toBe(stats.inFlight);
    for (const [outcome, count] of Object.entries(stats.outcomes))
      expect(sum(select(series, 'requests_total', { outcome }))).toBe(count);
    expect(sum(select(series, 'requests_total')) + sum(select(series, 'queue_size'))).toBe(host.sent);
    const { resourceMetrics } = await reader.collect();
    const points = resourceMetrics.scopeMetrics
      .flatMap(({ metrics }) => metrics)
      .map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints] as const);
    const told = Object.fromEntries(
      points.map(([name, all]) => [
        name,
        all.reduce((total, { value }) => total + (typeof value === 'number' ? value : 0), 0),
      ]),
    );
    expect(told['flow_control.queue.size'] ?? 0).toBe(stats.waiting);
    expect(told['flow_control.queue.payload'] ?? 0).toBe(stats.waitingBytes);
    expect(told['flow_control.requests'] ?? 0).toBe(host.sent - stats.waiting);
    expect(told['flow_control.evictions']).toBe(sum(select(series, 'revocations_issued_total')));
    expect(told['flow_control.saturation']).toBe(sum(select(series, 'pool_saturation')));
  }
  await meterProvider.shutdown();
}

it.each([false, true])('gauges and counts are the controller’s at every step, model labels: %s', async (hasModels) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }), (steps) => play(steps, hasModels)),
    { seed: 2_110, numRuns: 40 },
  );
});
