/** A controller's metrics in a registry of prom-client. */
import * as s from '../../base/schema/schema.js';
import type { FlowRequest } from '../../index.js';
import type { Observation, ObservedFlow } from '../metrics/labelled-flows.js';
import { dynamoRejections, families } from './families.js';
import { FlowMeter, type FlowReadings } from './flow-meter.js';
import { type PrometheusMetricsOptions, prometheusOptions } from './options.js';
import { expose } from './scraped-metric.js';

/**
 * Registers the metrics of llm-d's flow control for a controller. Counts begin now; gauges are read from the controller
 * when somebody scrapes. Costs O(1) for each request, and O(series) for each scrape, however much waits. Source of
 * names, labels and buckets: llm-d's flow control document; llm-d-router, its metrics.
 * @throws FlowConfigError that lists every problem
 * @example
 * const register = new Registry();
 * const metrics = prometheusMetrics(flow, { register, inferencePool: 'llama' });
 * app.get('/metrics', async (req, res) => res.type(register.contentType).send(await register.metrics()));
 */
export function prometheusMetrics<R extends FlowRequest>(
  flow: ObservedFlow<R>,
  options: PrometheusMetricsOptions<R>,
): Observation {
  s.parse(prometheusOptions, options, 'prometheusMetrics');
  const { register, prefix = 'inference_extension_', inferencePool = '', dynamo } = options;
  const meter = new FlowMeter(flow, options);
  try {
    const all = dynamo === undefined ? families : [...families, dynamoRejections];
    const withdraw = expose<FlowReadings>(register, prefix, all, inferencePool, meter);
    return {
      stop() {
        meter.stop();
        withdraw();
      },
    };
  } catch (error) {
    meter.stop();
    throw error;
  }
}
