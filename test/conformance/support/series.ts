/** Series of a registry, counted as the reference counts them: a histogram's parts are one. */
import { Registry } from 'prom-client';
import { type PrometheusMetricsOptions, prometheusMetrics } from '../../../src/observability/prometheus/index.js';
import type { Rig, Ticket } from './rig.js';

interface Sample {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, unknown>>;
  readonly value: number;
}

export class Series {
  private readonly register = new Registry();

  constructor({ flow }: Rig, options: Omit<PrometheusMetricsOptions<Ticket>, 'register'> = {}) {
    prometheusMetrics(flow, { register: this.register, ...options });
  }

  /** The samples of one metric with these labels, as they are now; `name` without its prefix. */
  async of(name: string, labels: Readonly<Record<string, string>> = {}): Promise<readonly Sample[]> {
    const metric = this.register.getSingleMetric(`inference_extension_flow_control_${name}`);
    if (metric === undefined) throw new Error(`no metric ${name}`);
    const { values } = await metric.get();
    const samples = values as readonly Sample[];
    return samples.filter(
      ({ metricName, ...of }) =>
        (metricName === undefined || metricName.endsWith('_count')) &&
        Object.entries(labels).every(([label, value]) => of.labels[label] === value),
    );
  }

  /** Of all metrics that tell flows apart. */
  async ofFlow(fairnessId: string): Promise<number> {
    const names = ['request_queue_duration_seconds', 'queue_size', 'queue_bytes'];
    const all = await Promise.all(names.map((name) => this.of(name, { fairness_id: fairnessId })));
    return all.flat().length;
  }
}
