/** The figures of a worker's own cap in a registry of prom-client, under Dynamo's names. */
import type { WorkerAdmission } from '../../index.js';
import type { Observation } from '../metrics/observed-flow.js';
import { expose, type Family, type MetricsRegister, type Sample } from './scraped-metric.js';

type Worker = Pick<WorkerAdmission, 'stats'>;

function sample(value: number): Sample[] {
  return [{ labels: {}, value }];
}

export const workerFamilies: readonly Family<Worker>[] = [
  {
    name: 'dynamo_rejection_request_total',
    type: 'counter',
    help: 'Requests rejected because the engine and its queue are full, or because they waited too long.',
    labels: [],
    samples: (worker) => {
      const { rejectedQueueFull, rejectedQueueDelay } = worker.stats();
      return sample(rejectedQueueFull + rejectedQueueDelay);
    },
  },
  {
    name: 'dynamo_engine_request',
    type: 'gauge',
    help: 'Requests that run in the engine.',
    labels: [],
    samples: (worker) => sample(worker.stats().running),
  },
  {
    name: 'dynamo_request_queue',
    type: 'gauge',
    help: 'Requests that wait for the engine.',
    labels: [],
    samples: (worker) => sample(worker.stats().waiting),
  },
];

/**
 * Registers the figures of one `workerAdmission`. They are read when somebody scrapes; requests cost nothing.
 * Source of the names: Dynamo, request rejection in the worker.
 * @throws FlowConfigError when the registry has them already
 */
export function workerMetrics(worker: Worker, { register }: { readonly register: MetricsRegister }): Observation {
  return { stop: expose<Worker>(register, '', workerFamilies, '', worker) };
}
