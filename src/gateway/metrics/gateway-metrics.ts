/** What `/metrics` shows: flow control, the gateway's counters, the process. docs/metrics.md is held against it. */
import type { Registry } from 'prom-client';
import { BoundedLabel, otherLabel } from '../../base/bounded-label.js';
import { put } from '../../base/put.js';
import type { FlowController, SaturationDetector } from '../../index.js';
import {
  exposition,
  prometheusMetrics,
  sharedQuotaMetrics,
  sharedStateMetrics,
} from '../../observability/prometheus/index.js';
import type { GatewayRequest } from '../gateway-flow.js';
import type { RequestState } from '../request-state.js';
import type { SharedState } from '../shared/shared-state.js';
import type { GatewayCounters } from './gateway-counters.js';
import type { KnownModels } from './known-models.js';

export type PromClient = typeof import('prom-client');

/** What `/metrics` answers. */
export interface MetricsSource {
  readonly contentType: string;
  /** The text, in parts that do not hold the event loop. */
  parts(): AsyncIterable<string>;
  /** As prom-client puts those of several processes together. */
  json(): Promise<readonly object[]>;
}

export interface MetricParts {
  readonly flow: FlowController<GatewayRequest>;
  readonly counters: GatewayCounters;
  readonly knownModels: KnownModels;
  readonly detectors: () => readonly SaturationDetector[];
  readonly shared: SharedState | undefined;
}

/** Names, and what they count. */
const counted = {
  headgate_http_responses_total: [
    'answers',
    'Requests that have ended by status, and by who made the answer; status none: the client left before there was one.',
  ],
  headgate_streams_cut_total: ['cuts', 'Answers that had begun and did not end, by who ended them.'],
  headgate_waiting_answers_total: [
    'signs',
    'Answers that began while their requests waited; signs of life; and those that failed after it.',
  ],
  headgate_upstream_requests_total: ['sent', 'Requests sent to a model server, those that were sent again included.'],
  headgate_upstream_failures_total: ['failures', 'Requests that a model server did not answer, or not to the end.'],
  headgate_upstream_refusals_total: ['refusals', 'Requests that a model server refused because of load.'],
  headgate_upstream_retries_total: ['retries', 'Requests that went to another model server after this one.'],
  headgate_upstream_health_checks_total: [
    'checks',
    'Health checks by what they brought: well, ill, silent, or disregarded because no server answered.',
  ],
  headgate_tokens_total: ['tokens', 'Tokens that model servers reported, by tenant.'],
} as const;

/** Seconds. Source: OpenTelemetry's semantic conventions for generative AI, with room above for what waits here. */
const ttftBuckets = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 12.5, 15, 20, 30, 45, 60,
];
/** Series of the time to the first token, one for each priority and model; the rest is `other`. */
const mostSeries = 200;

export function gatewayMetrics(promClient: PromClient, parts: MetricParts): MetricsSource {
  const { flow, counters, knownModels, detectors, shared } = parts;
  const register = new promClient.Registry();
  prometheusMetrics(flow, {
    register,
    detectors,
    modelName: ({ askedModel }) => knownModels.labelOf(askedModel),
    targetModelName: ({ model }) => knownModels.labelOf(model),
  });
  const { detector: leases, workers } = shared ?? {};
  if (leases !== undefined) sharedStateMetrics(() => leases.status, { register });
  if (workers !== undefined) sharedStateMetrics(() => workers.status, { register, source: 'workers' });
  const quotas = shared?.quotas;
  if (quotas !== undefined) sharedQuotaMetrics(() => quotas, { register });
  for (const [name, [figure, help]] of Object.entries(counted)) {
    const { labelNames } = counters[figure];
    new promClient.Counter({
      ...{ name, help, labelNames, registers: [register] },
      collect() {
        this.reset();
        for (const { labels, value } of counters[figure].rows()) this.inc(labels, value);
      },
    });
  }
  counters.onFirstToken = firstTokens(promClient, register, knownModels);
  counters.onReport = estimates(promClient, register, knownModels);
  const ofProcess = processMetrics(promClient);
  return {
    contentType: register.contentType,
    async *parts() {
      yield* exposition(register);
      yield `\n${await ofProcess.metrics()}`;
    },
    json: async () => [...(await register.getMetricsAsJSON()), ...(await ofProcess.getMetricsAsJSON())],
  };
}

/** Gauges whose names say that they count; the same figures come under `nodejs_active_handles` and so on, by type. */
const misnamed = ['nodejs_active_resources_total', 'nodejs_active_handles_total', 'nodejs_active_requests_total'];

/** One for the process, however many gateways it has: prom-client never takes its observers back. */
const registers = new WeakMap<PromClient, Registry>();

/** CPU, memory, the delay of the event loop, garbage collection. */
function processMetrics(promClient: PromClient): Registry {
  const known = registers.get(promClient);
  if (known !== undefined) return known;
  const register = new promClient.Registry();
  promClient.collectDefaultMetrics({ register });
  for (const name of misnamed) register.removeSingleMetric(name);
  return put(registers, promClient, register);
}

function firstTokens({ Histogram }: PromClient, register: Registry, models: KnownModels) {
  const histogram = new Histogram({
    name: 'headgate_time_to_first_token_seconds',
    help: 'From the arrival of a request to the first token of its streamed answer, waiting included.',
    labelNames: ['priority', 'model_name'],
    buckets: ttftBuckets,
    registers: [register],
  });
  const series = new BoundedLabel(mostSeries);
  return (seconds: number, { lease, targetModel }: RequestState) => {
    const [priority, model_name] = [String(lease?.priority ?? 0), models.labelOf(targetModel)];
    const isKnown = series.of(`${priority} ${model_name}`) !== otherLabel;
    histogram.observe(isKnown ? { priority, model_name } : { priority: otherLabel, model_name: otherLabel }, seconds);
  };
}

function estimates({ Histogram }: PromClient, register: Registry, models: KnownModels): GatewayCounters['onReport'] {
  const histogram = new Histogram({
    name: 'inference_extension_flow_control_token_estimate_ratio',
    help: 'Prompt tokens as servers reported them, divided by those that were estimated.',
    labelNames: ['model_name'],
    buckets: [0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 4, 10],
    registers: [register],
  });
  return (ratio, { targetModel }) => histogram.observe({ model_name: models.labelOf(targetModel) }, ratio);
}
