/** What `/metrics` of an endpoint picker shows: flow control and requests, by the names of llm-d's router. */
import type { Registry } from 'prom-client';
import type { EndpointPool, Usage } from '../../index.js';
import type { PromClient } from '../metrics/gateway-metrics.js';

export const eppPrefix = 'llm_d_epp_';

/** The labels of one request. */
type RequestLabels = Readonly<Record<(typeof labelNames)[number], string>>;

export interface EppCounts {
  /** It could not be read. */
  refused(status: number): void;
  /** It has ended with this status; 0 without one. */
  ended(labels: RequestLabels, status: number, isRefused: boolean, usage: Usage | undefined): void;
}

const unread: RequestLabels = { fairness_id: '', model_name: '', priority: '', target_model_name: '' };
const labelNames = ['fairness_id', 'model_name', 'priority', 'target_model_name'] as const;
const tokenBuckets = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072];

/** By status. Source: llm-d-router, its error codes; those of a server are one. */
const errorCodes: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  413: 'BadRequest',
  429: 'ResourceExhausted',
  500: 'Internal',
  503: 'ServiceUnavailable',
};

export function eppMetrics(client: PromClient, register: Registry, pool: EndpointPool): EppCounts {
  const { Counter, Gauge, Histogram } = client;
  const registers = [register];
  const counter = <L extends string>(name: string, help: string, names: readonly L[]) =>
    new Counter({ name: eppPrefix + name, help, labelNames: names, registers });
  const histogram = (name: string, help: string) =>
    new Histogram({ name: eppPrefix + name, help, labelNames, buckets: tokenBuckets, registers });
  const requests = counter('request_total', 'Requests that could be read.', labelNames);
  const errors = counter('request_error_total', 'Requests that failed.', [...labelNames, 'error_code']);
  const input = histogram('request_input_tokens', 'Tokens of prompts, as servers reported them.');
  const output = histogram('request_output_tokens', 'Tokens of answers, as servers reported them.');
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name: eppPrefix + name,
      help,
      registers,
      collect(this: InstanceType<typeof Gauge>) {
        this.set(read());
      },
    });
  const ready = (): number => pool.endpoints.filter(({ state = 'ready' }) => state === 'ready').length;
  gauge('ready_endpoints', 'Servers that may get requests.', ready);
  gauge('running_requests', 'Requests at a server.', () => pool.inFlightRequests);
  return {
    refused: (status) => errors.inc({ ...unread, error_code: errorCodes[status] ?? 'Unknown' }),
    ended(labels, status, isRefused, usage) {
      requests.inc({ ...labels });
      const ofServer = status >= 400 ? 'ModelServerError' : undefined;
      const error_code = isRefused ? (errorCodes[status] ?? 'Unknown') : ofServer;
      if (error_code !== undefined) errors.inc({ ...labels, error_code });
      const { promptTokens = 0, completionTokens = 0 } = usage ?? {};
      if (promptTokens > 0) input.observe({ ...labels }, promptTokens);
      if (completionTokens > 0) output.observe({ ...labels }, completionTokens);
    },
  };
}
