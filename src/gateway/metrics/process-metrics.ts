/** Metrics of the process, by prom-client: CPU, memory, the delay of the event loop, garbage collection. */
import type { Registry } from 'prom-client';
import { exposition } from '../../observability/prometheus/index.js';

export type PromClient = typeof import('prom-client');

/** Gauges whose names say that they count; the same figures come under `nodejs_active_handles` and so on, by type. */
const misnamed = ['nodejs_active_resources_total', 'nodejs_active_handles_total', 'nodejs_active_requests_total'];

/** One for the process, however many gateways it has: prom-client never takes its observers back. */
const registers = new WeakMap<PromClient, Registry>();

export function processMetrics(promClient: PromClient): Registry {
  let register = registers.get(promClient);
  if (register === undefined) {
    const own = new promClient.Registry();
    promClient.collectDefaultMetrics({ register: own });
    for (const name of misnamed) own.removeSingleMetric(name);
    registers.set(promClient, own);
    register = own;
  }
  return register;
}

/** What `/metrics` answers. */
export interface MetricsSource {
  readonly contentType: string;
  /** The text, in parts that do not hold the event loop. */
  parts(): AsyncIterable<string>;
}

/** Both in one exposition. */
export function joined(first: Registry, second: Registry): MetricsSource {
  return {
    contentType: first.contentType,
    async *parts() {
      yield* exposition(first);
      yield `\n${await second.metrics()}`;
    },
  };
}
