/** Quotas that replicas share, as metrics. */
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { type ObservedQuotas, sharedQuotaMetrics } from '../../../src/observability/prometheus/index.js';

it('tell what all have used, what was bought ahead, and whether the store answers; and go when they are stopped', async () => {
  const register = new Registry();
  let quotas: ObservedQuotas = {
    name: 'openai',
    status: [{ key: 'main tokens 60000', balance: 25, used: 400, limit: 1_000, isLocal: false }],
    store: { calls: 7, misses: 2, isBreakerOpen: false, breakerOpenings: 0, latencyMs: 1 },
  };
  const observation = sharedQuotaMetrics(() => quotas, { register });
  const samples = async (): Promise<string[]> =>
    (await register.metrics()).split('\n').filter((line) => !/^#|^$/.test(line));
  const quota = 'name="openai",quota="main tokens 60000"';
  expect(await samples()).toEqual([
    `headgate_shared_quota_limit{${quota}} 1000`,
    `headgate_shared_quota_used{${quota}} 400`,
    `headgate_shared_quota_balance{${quota}} 25`,
    `headgate_shared_quota_local{${quota}} 0`,
    'headgate_shared_quota_engine_breaker_open{name="openai"} 0',
    'headgate_shared_quota_engine_calls_total{name="openai"} 7',
    'headgate_shared_quota_engine_misses_total{name="openai"} 2',
  ]);
  const [status] = quotas.status;
  quotas = { ...quotas, status: [{ ...status!, isLocal: true }], store: { ...quotas.store, isBreakerOpen: true } };
  expect(await samples()).toEqual(
    expect.arrayContaining([
      `headgate_shared_quota_local{${quota}} 1`,
      'headgate_shared_quota_engine_breaker_open{name="openai"} 1',
    ]),
  );
  observation.stop();
  expect(await samples()).toEqual([]);
});
