import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/testing/index.js';
import { EndpointPool, type LoadHeaders, reportFromHeaders } from '../../../src/upstream/index.js';

function reported(headers: LoadHeaders, pool = poolOfOne()): unknown {
  const hasReported = reportFromHeaders(pool, 'a', headers);
  const { metrics } = pool.get('a')!;
  expect(hasReported).toBe(metrics !== undefined);
  return metrics;
}

function poolOfOne(): EndpointPool {
  const pool = new EndpointPool();
  const clock = new ManualClock(50);
  pool.attach({ onPoolChange: () => {}, backlog: { waiting: 0 } }, clock);
  pool.add('a');
  return pool;
}

const load = { waitingQueueSize: 3, kvCacheUsage: 0.75, runningRequests: 0, sampledAtMs: 50 };

describe('the load in a response’s headers', () => {
  it.each([
    ['text of vLLM', 'TEXT named_metrics.kv_cache_usage_perc=0.75, named_metrics.num_requests_waiting=3.0'],
    ['JSON of vLLM', 'JSON {"named_metrics": {"kv_cache_usage_perc": 0.75, "num_requests_waiting": 3.0}}'],
    ['text without its format', 'named_metrics.kv_cache_usage_perc=0.75,named_metrics.num_requests_waiting=3'],
    ['JSON without its format', '{"named_metrics":{"kv_cache_usage_perc":0.75,"num_requests_waiting":3}}'],
    [
      'text with other figures',
      'text cpu_utilization=0.3, rps_fractional=10, named_metrics.kv_cache_utilization=0.75, named_metrics.num_requests_waiting=3',
    ],
    [
      'JSON with other figures',
      'json {"cpu_utilization":0.3,"named_metrics":{"kv_cache_utilization":0.75,"num_requests_waiting":3,"x":null}}',
    ],
  ])('is read from %s', (_, header) => {
    expect(reported({ 'endpoint-load-metrics': header })).toEqual(load);
    expect(reported(new Headers({ 'Endpoint-Load-Metrics': header }))).toEqual(load);
  });

  it.each([
    ['there is none', undefined],
    ['it is empty', ''],
    ['it is binary', 'BIN CZqZmZmZmbk/MQAAAAAAAABA'],
    ['the queue is missing', 'TEXT named_metrics.kv_cache_utilization=0.98, named_metrics.max_token_capacity=1024'],
    ['the cache is missing', 'TEXT named_metrics.num_requests_waiting=1'],
    ['a figure is no number', 'TEXT named_metrics.kv_cache_usage_perc=high, named_metrics.num_requests_waiting=3'],
    ['a figure is negative', 'JSON {"named_metrics":{"kv_cache_usage_perc":-1,"num_requests_waiting":3}}'],
    ['a figure is text', 'JSON {"named_metrics":{"kv_cache_usage_perc":"0.5","num_requests_waiting":3}}'],
    ['it is no JSON', 'JSON {"named_metrics":'],
    ['it is another JSON', 'JSON [1]'],
    [
      'it is too long',
      `TEXT a=${'1'.repeat(20_000)}, named_metrics.kv_cache_usage_perc=0.75, named_metrics.num_requests_waiting=3`,
    ],
  ])('is not reported when %s', (_, header) => {
    expect(reported({ 'endpoint-load-metrics': header })).toBeUndefined();
    expect(reported(new Headers(header === undefined ? {} : { 'endpoint-load-metrics': header }))).toBeUndefined();
  });

  it('leaves alone what it does not hold', () => {
    const pool = poolOfOne();
    pool.report('a', { waitingQueueSize: 0, runningRequests: 9, kvCacheUsage: 0, ranks: [{ totalBlocks: 10 }] });
    reportFromHeaders(pool, 'a', {
      'endpoint-load-metrics': 'named_metrics.kv_cache_usage_perc=0.75,named_metrics.num_requests_waiting=3',
    });
    expect(pool.get('a')?.metrics).toMatchObject({ ...load, runningRequests: 9, ranks: [{ totalBlocks: 10 }] });
  });

  it('is not reported for a server that is no member', () => {
    const pool = poolOfOne();
    const former = pool.get('a')!;
    pool.remove('a');
    pool.add('a');
    const headers = {
      'endpoint-load-metrics': 'named_metrics.kv_cache_usage_perc=0.75,named_metrics.num_requests_waiting=3',
    };
    expect([reportFromHeaders(pool, former, headers), reportFromHeaders(pool, 'b', headers)]).toEqual([false, false]);
    expect(pool.get('a')?.metrics).toBeUndefined();
  });
});
