import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { workerAdmission } from '../../../src/index.js';
import { workerMetrics } from '../../../src/observability/prometheus/index.js';
import { scrape } from './exposition.js';

it('tells what runs, what waits and what was rejected, until it is stopped', async () => {
  const worker = workerAdmission({
    engineRequestLimit: 1,
    requestQueueLimit: 1,
    maxQueueDelay: Number.POSITIVE_INFINITY,
  });
  const register = new Registry();
  const metrics = workerMetrics(worker, { register });
  for (let i = 0; i < 5; i++) void worker.acquire();
  const figures = Object.fromEntries((await scrape(register)).map(({ name, value }) => [name, value]));
  expect(figures).toEqual({ dynamo_rejection_request_total: 3, dynamo_engine_request: 1, dynamo_request_queue: 1 });
  expect(() => workerMetrics(worker, { register })).toThrow(/no other source/);
  metrics.stop();
  expect(register.getMetricsAsArray()).toEqual([]);
});
