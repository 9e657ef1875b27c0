import { describe, expect, it } from 'vitest';
import { overQuota } from '../../../src/core/engine/drops.js';
import { EndpointPool, type FlowControllerOptions } from '../../../src/index.js';
import { dropOf, key, leaseOf, makeFlow, request, runNow } from '../../support/flow.js';

/** A controller of which band 0 has dispatched five requests within the last second, one of which runs. */
function busyFlow(options: Partial<FlowControllerOptions> = {}) {
  const made = makeFlow({ bands: [{ priority: 0, limits: { maxRequests: 3 } }], ...options });
  for (let i = 0; i < 4; i++) runNow(made.flow).release();
  const lease = runNow(made.flow);
  return { ...made, lease };
}

describe('Retry-After', () => {
  it('is the time that the requests now waiting in the band take at its recent rate', async () => {
    const { flow } = busyFlow();
    for (let i = 0; i < 3; i++) void flow.enqueue(request, key());
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({
      reason: 'band-max-requests',
      retryAfterMs: 600,
    });
  });

  it('is the time of one request where nothing waits', async () => {
    const { flow } = busyFlow();
    expect(dropOf(await flow.enqueue({ byteSize: 1e15 }, key()))).toMatchObject({
      type: 'RejectedCapacity',
      retryAfterMs: 200,
    });
  });

  it('is unknown where the band has dispatched nothing of late', async () => {
    const { flow } = makeFlow();
    expect(dropOf(await flow.enqueue({ byteSize: 1e15 }, key()))).toMatchObject({
      type: 'RejectedCapacity',
      retryAfterMs: undefined,
    });
  });

  it('is unknown where there is no band', async () => {
    const { flow } = busyFlow({ maxBands: 1 });
    expect(dropOf(await flow.enqueue(request, key('a', 7)))).toMatchObject({
      reason: 'max-bands',
      retryAfterMs: undefined,
    });
  });

  it('is told for a request whose time was up', async () => {
    const { flow, clock } = busyFlow();
    const waiting = flow.enqueue({ ...request, ttlMs: 100 }, key());
    clock.advance(100);
    expect(dropOf(await waiting)).toMatchObject({ reason: 'ttl-expired', retryAfterMs: 200 });
  });

  it('is not told to a client that went away', async () => {
    const { flow } = busyFlow();
    const abort = new AbortController();
    const waiting = flow.enqueue({ ...request, signal: abort.signal }, key());
    abort.abort();
    expect(dropOf(await waiting)).toMatchObject({ reason: 'cancelled', retryAfterMs: undefined });
  });

  it('is not told where the controller closes', async () => {
    const { flow, lease } = busyFlow();
    const waiting = flow.enqueue(request, key());
    const closed = flow.close({ drainMs: 0 });
    expect(dropOf(await waiting)).toMatchObject({ reason: 'shutting-down', retryAfterMs: undefined });
    lease.release();
    await closed;
  });

  it('is not told to a request that became void', async () => {
    const { flow, lease } = busyFlow({ onDispatch: () => 'its key was revoked' });
    const waiting = flow.enqueue(request, key());
    lease.release();
    expect(dropOf(await waiting)).toMatchObject({ reason: 'revoked', retryAfterMs: undefined });
  });

  it('is not told where there are no endpoints', async () => {
    const pool = new EndpointPool();
    pool.add('e1');
    const { flow, clock } = busyFlow({ pool, noEndpointRequestTtl: 50 });
    pool.update('e1', { state: 'ill' });
    const waiting = flow.enqueue(request, key());
    clock.advance(50);
    expect(dropOf(await waiting)).toMatchObject({ reason: 'no-endpoints', retryAfterMs: undefined });
  });
});

it('drops are counted by their kind, and in all', async () => {
  const { flow } = busyFlow();
  for (let i = 0; i < 3; i++) dropOf(await flow.enqueue({ byteSize: 1e15 }, key()));
  expect(flow.stats()).toMatchObject({ rejected: 3, evicted: 0, enqueued: 8 });
});

describe('the explanation of a drop', () => {
  it('has the reading that the band was judged by where the time was up', async () => {
    const { flow, clock } = busyFlow();
    const waiting = flow.enqueue({ ...request, ttlMs: 100 }, key());
    clock.advance(100);
    expect(dropOf(await waiting).explanation?.text).toContain('saturation was 1.00, the ceiling 1.00');
  });
});

describe('the detail of a drop', () => {
  it('says why no endpoint can be had, whether the request waited or not', async () => {
    const pool = new EndpointPool();
    pool.add('e1');
    const { flow, clock } = makeFlow({ pool, noEndpointRequestTtl: 50, limits: { maxRequests: 1 } });
    pool.update('e1', { state: 'ill' });
    const waiting = flow.enqueue(request, key());
    const why = 'every server is ill, draining or marked as overloaded';
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({ type: 'RejectedNoEndpoints', detail: why });
    clock.advance(50);
    expect(dropOf(await waiting)).toMatchObject({ type: 'EvictedNoEndpoints', reason: 'no-endpoints', detail: why });
  });

  it('does not blame the endpoints for anything else', async () => {
    const pool = new EndpointPool();
    pool.add('e1');
    const { flow } = makeFlow({ pool });
    leaseOf(flow.tryEnqueue(request, key()));
    const abort = new AbortController();
    const waiting = flow.enqueue({ ...request, signal: abort.signal }, key());
    pool.update('e1', { state: 'ill' });
    abort.abort();
    expect(dropOf(await waiting)).toMatchObject({ type: 'EvictedContextCancelled', detail: undefined });
  });

  it.each([
    [1500, 500],
    [1000, 0],
    [400, 0],
  ])('tells of a quota that has room at %i, asked at 1000, that %i ms are left', (atMs, retryAfterMs) => {
    const wait = { atMs, notBeforeMs: atMs, missing: 'tokens' };
    expect(overQuota(wait, 1000)).toEqual(['over-quota', { detail: 'tokens', retryAfterMs }]);
    const [reason, details] = overQuota({ ...wait, isBudget: true }, 1000);
    expect([reason, details]).toEqual([
      'over-budget',
      { policy: 'budgets', detail: 'no room in time for tokens', retryAfterMs },
    ]);
  });
});
