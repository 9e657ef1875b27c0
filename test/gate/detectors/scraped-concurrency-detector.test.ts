import { describe, expect, it } from 'vitest';
import { defaultRegistry, EndpointPool, FlowConfigError, scrapedConcurrency } from '../../../src/index.js';
import { endpointView, poolView } from '../../../src/testing/contracts/views.js';
import { key, makeFlow, request } from '../../support/flow.js';

const nowMs = 10_000;

function server(
  id: string,
  runningRequests: number,
  waitingQueueSize: number,
  { ageMs = 0, weight = 1, unsampledRequests = 0 } = {},
) {
  const metrics = { runningRequests, waitingQueueSize, kvCacheUsage: 0, sampledAtMs: nowMs - ageMs };
  return endpointView(id, { metrics, weight, unsampledRequests });
}

describe('scrapedConcurrency', () => {
  it('counts what runs and waits at every server, whoever sent it', () => {
    const pool = poolView(server('a', 3, 1), server('b', 2, 0));
    expect(scrapedConcurrency({ maxConcurrency: 5 }).saturation(pool, nowMs)).toBeCloseTo(0.6);
  });

  it('counts what was sent since the last report', () => {
    const pool = poolView(server('a', 3, 1, { unsampledRequests: 1 }));
    expect(scrapedConcurrency({ maxConcurrency: 5 }).saturation(pool, nowMs)).toBe(1);
  });

  it('takes 100 requests for a server of weight 1 by default', () => {
    expect(scrapedConcurrency().saturation(poolView(server('a', 30, 0, { weight: 3 })), nowMs)).toBeCloseTo(0.1);
  });

  it('keeps the load of a stale server and drops its capacity', () => {
    const pool = poolView(server('a', 2, 0), server('b', 3, 0, { ageMs: 2001 }));
    expect(scrapedConcurrency({ maxConcurrency: 5 }).saturation(pool, nowMs)).toBe(1);
    expect(scrapedConcurrency({ maxConcurrency: 5, metricsStalenessThreshold: '3s' }).saturation(pool, nowMs)).toBe(
      0.5,
    );
  });

  it('counts the load of a server that it is shown although it cannot be had, and drops its capacity', () => {
    const draining = { ...server('b', 3, 0), state: 'draining' as const };
    const marked = { ...server('b', 3, 0), overloadedUntilMs: nowMs + 1 };
    for (const away of [draining, marked]) {
      const detector = scrapedConcurrency({ maxConcurrency: 5 });
      expect(detector.saturation(poolView(server('a', 2, 0), away), nowMs)).toBe(1);
      expect(detector.filter?.([server('a', 2, 0), away], nowMs)?.map(({ id }) => id)).toEqual(['a']);
    }
  });

  it('counts what was sent to a server that never reported', () => {
    const silent = endpointView('b', { inFlightRequests: 2 });
    expect(scrapedConcurrency({ maxConcurrency: 4 }).saturation(poolView(server('a', 1, 0), silent), nowMs)).toBe(0.75);
  });

  it('is full where no metrics are fresh', () => {
    const detector = scrapedConcurrency({ maxConcurrency: 5 });
    expect(detector.saturation(poolView(server('a', 0, 0, { ageMs: 2001 })), nowMs)).toBe(1);
    expect(detector.saturation(poolView(), nowMs)).toBe(1);
  });

  it('keeps the servers with fresh metrics below their own limit', () => {
    const endpoints = [
      server('roomy', 4, 0),
      server('full', 3, 2),
      server('sent to', 4, 0, { unsampledRequests: 1 }),
      server('stale', 0, 0, { ageMs: 2001 }),
      server('larger', 5, 2, { weight: 2 }),
    ];
    const kept = scrapedConcurrency({ maxConcurrency: 5 }).filter?.(endpoints, nowMs);
    expect(kept?.map(({ id }) => id)).toEqual(['roomy', 'larger']);
  });

  it('lets two gateways before one pool agree', () => {
    const pools = [new EndpointPool(), new EndpointPool()];
    const [one, other] = pools.map((pool) => {
      pool.add('gpu-0');
      return makeFlow({ pool, saturationDetector: scrapedConcurrency({ maxConcurrency: 2 }) });
    });
    const report = (runningRequests: number): void => {
      for (const pool of pools) pool.report('gpu-0', { runningRequests, waitingQueueSize: 0, kvCacheUsage: 0 });
    };
    report(0);
    expect(one?.flow.tryEnqueue(request, key())?.type).toBe('Dispatched');
    expect(one?.flow.tryEnqueue(request, key())?.type).toBe('Dispatched');
    report(2);
    expect(other?.flow.tryEnqueue(request, key())).toBeUndefined();
  });

  it('accepts in files what llm-d writes, and nothing else', () => {
    const create = (parameters: object): unknown =>
      defaultRegistry().create('scraped-concurrency-detector', parameters);
    expect(create({ maxConcurrency: 5, metricsStalenessThreshold: '2s', ownDispatchWindow: '1s' })).toMatchObject({
      needsPool: true,
    });
    for (const wrong of [
      { maxConcurrency: 0 },
      { metricsStalenessThreshold: '0s' },
      { ownDispatchWindow: -1 },
      { window: 1 },
    ]) {
      expect(() => create(wrong)).toThrow(FlowConfigError);
    }
  });
});
