import { describe, expect, it } from 'vitest';
import { EndpointPool, type EndpointView, leastKvUsage } from '../../../src/index.js';
import { fakeItem } from '../../support/fake-item.js';
import { fakeEndpoint } from '../../support/fake-pool.js';
import { makeFlow, runNow } from '../../support/flow.js';

interface Figures extends Partial<EndpointView> {
  kv: number;
  running?: number;
  waiting?: number;
}

function reporting(id: string, { kv, running = 0, waiting = 0, ...figures }: Figures): EndpointView {
  const metrics = { kvCacheUsage: kv, runningRequests: running, waitingQueueSize: waiting, sampledAtMs: 0 };
  return fakeEndpoint(id, { metrics, ...figures });
}

function pick(...endpoints: EndpointView[]): string | undefined {
  return leastKvUsage().pick(endpoints, fakeItem(), 0)?.id;
}

describe('leastKvUsage', () => {
  it('picks the cache that is least full, whatever else is in flight', () => {
    expect(
      pick(reporting('a', { kv: 0.5 }), reporting('b', { kv: 0.3, inFlightRequests: 9 }), reporting('c', { kv: 0.4 })),
    ).toBe('b');
  });

  it('counts each request that the report cannot contain as one of those that run', () => {
    // Each of the four requests takes 0.1: two more make 0.6.
    const busy = reporting('a', { kv: 0.4, running: 4, unsampledRequests: 2 });
    expect(pick(busy, reporting('b', { kv: 0.59 }))).toBe('b');
    expect(pick(busy, reporting('b', { kv: 0.61 }))).toBe('a');
  });

  it('counts requests that wait in the server’s queue the same way', () => {
    const queueing = reporting('a', { kv: 0.4, running: 4, waiting: 2 });
    expect(pick(queueing, reporting('b', { kv: 0.59 }))).toBe('b');
    expect(pick(queueing, reporting('b', { kv: 0.61 }))).toBe('a');
  });

  it('takes a hundredth for what a request needs where none runs', () => {
    expect(pick(reporting('a', { kv: 0, unsampledRequests: 10 }), reporting('b', { kv: 0.09 }))).toBe('b');
    expect(pick(reporting('a', { kv: 0, unsampledRequests: 10 }), reporting('b', { kv: 0.11 }))).toBe('a');
  });

  it('takes an endpoint that has not reported for full', () => {
    expect(pick(fakeEndpoint('a'), reporting('b', { kv: 0.99, running: 99, inFlightRequests: 99 }))).toBe('b');
    expect(pick(fakeEndpoint('a'), reporting('b', { kv: 0.99, running: 99, unsampledRequests: 2 }))).toBe('a');
  });

  it('picks the less loaded of equals, also where nobody has reported', () => {
    expect(
      pick(reporting('a', { kv: 0.3, inFlightRequests: 2 }), reporting('b', { kv: 0.3, inFlightRequests: 1 })),
    ).toBe('b');
    expect(pick(reporting('a', { kv: 0.3 }), reporting('b', { kv: 0.3 }))).toBe('a');
    expect(pick(fakeEndpoint('a', { inFlightTokens: 3 }), fakeEndpoint('b', { inFlightTokens: 2 }))).toBe('b');
  });

  it('sends no herd to the emptiest cache of one report', () => {
    const pool = new EndpointPool();
    const usage = { a: 0.1, b: 0.2, c: 0.3 };
    for (const id of Object.keys(usage)) pool.add(id);
    const { flow, clock } = makeFlow({ pool, endpointPicker: leastKvUsage(), saturationDetector: () => 0 });
    clock.advance(10);
    for (const [id, kvCacheUsage] of Object.entries(usage))
      pool.report(id, { kvCacheUsage, runningRequests: 10, waitingQueueSize: 0 });
    clock.advance(1);
    for (let i = 0; i < 110; i++) runNow(flow);
    // A request takes 0.01 of the first cache, 0.02 of the second, 0.03 of the third: the caches must end level to
    // within one request.
    const sent = pool.endpoints.map(({ dispatchedRequests }) => dispatchedRequests);
    expect(sent.reduce((sum, each) => sum + each)).toBe(110);
    const levels = sent.map((count, index) => 0.1 * (index + 1) * (1 + count / 10));
    expect(Math.max(...levels) - Math.min(...levels)).toBeLessThanOrEqual(0.03 + 1e-9);
  });
});
