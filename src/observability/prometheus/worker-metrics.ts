/** The figures of a worker's own cap in a registry of prom-client, under Dynamo's names. */
import type { WorkerAdmission } from '../../types/index.js';
import type { Observation } from '../metrics/labelled-flows.js';
import { expose, type Family, familiesOf, type MetricsRegister } from './scraped-metric.js';

type Worker = Pick<WorkerAdmission, 'stats'>;

const figure = familiesOf('', [], (worker: Worker) => [[{}, worker.stats()]] as const);

export const workerFamilies: readonly Family<Worker>[] = [
  figure(
    'dynamo_rejection_request_total',
    'Requests rejected because the engine and its queue are full, or because they waited too long.',
    ({ rejectedQueueFull, rejectedQueueDelay }) => rejectedQueueFull + rejectedQueueDelay,
  ),
  figure('dynamo_engine_request', 'Requests that run in the engine.', ({ running }) => running),
  figure('dynamo_request_queue', 'Requests that wait for the engine.', ({ waiting }) => waiting),
];

/**
 * Registers a `workerAdmission`'s figures, read at a scrape. Source of the names: Dynamo, request rejection in the
 * worker. @throws FlowConfigError when the registry has them already
 */
export function workerMetrics(worker: Worker, { register }: { readonly register: MetricsRegister }): Observation {
  return { stop: expose<Worker>(register, '', workerFamilies, '', worker) };
}
