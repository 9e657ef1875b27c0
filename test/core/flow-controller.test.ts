import { describe, expect, it } from 'vitest';
import { roundRobin } from '../../src/index.js';
import { dropOf, leaseOf, makeFlow } from '../support/flow.js';

const key = { fairnessId: 'tenant-a', priority: 0 };
const request = { byteSize: 10 };

describe('FlowController', () => {
  it('dispatches at once while the gate is open, and holds the next request until the lease is released', async () => {
    const { flow } = makeFlow();
    const first = leaseOf(await flow.enqueue(request, key));
    const second = flow.enqueue(request, key);
    expect(flow.stats()).toMatchObject({ waiting: 1, inFlight: 1, dispatched: 1, isGateClosed: true });
    first.release();
    leaseOf(await second).release();
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0, dispatched: 2, enqueued: 2, released: 2 });
  });

  it('serves higher bands first, and flows of one band in turn', async () => {
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness: roundRobin() }] });
    const order: string[] = [];
    const running = leaseOf(await flow.enqueue(request, key));
    const all = [
      ['a', 0],
      ['a', 0],
      ['a', 0],
      ['b', 0],
      ['c', -1],
      ['d', 5],
    ].map(async ([fairnessId, priority]) => {
      const outcome = await flow.enqueue(request, { fairnessId: String(fairnessId), priority: Number(priority) });
      order.push(`${fairnessId}${priority}`);
      leaseOf(outcome).release();
    });
    running.release();
    await Promise.all(all);
    expect(order).toEqual(['d5', 'a0', 'b0', 'a0', 'a0', 'c-1']);
  });

  it('names the limit that a request did not fit into', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 1, maxBytes: 100 } });
    leaseOf(await flow.enqueue(request, key));
    void flow.enqueue(request, key);
    const outcome = dropOf(await flow.enqueue(request, key));
    expect(outcome).toMatchObject({
      type: 'RejectedCapacity',
      reason: 'global-max-requests',
      limit: { max: 1, used: 1 },
    });
    await flow.close();
  });

  it('expires a waiting request exactly at its TTL', async () => {
    const { flow, clock } = makeFlow({ defaultRequestTtl: '60s' });
    leaseOf(await flow.enqueue(request, key));
    const waiting = flow.enqueue(request, key);
    clock.advance(59_999);
    expect(flow.stats().waiting).toBe(1);
    clock.advance(1);
    expect(flow.stats().waiting).toBe(0);
    expect(dropOf(await waiting)).toMatchObject({ type: 'EvictedTTL', reason: 'ttl-expired', queuedMs: 60_000 });
    expect(clock.pendingTimers).toBe(0);
  });

  it('drops a waiting request when its signal aborts', async () => {
    const { flow } = makeFlow();
    const abort = new AbortController();
    leaseOf(await flow.enqueue(request, key));
    const waiting = flow.enqueue({ ...request, signal: abort.signal }, key);
    abort.abort();
    expect(flow.stats().waiting).toBe(0);
    expect(dropOf(await waiting).type).toBe('EvictedContextCancelled');
    expect(dropOf(await flow.enqueue({ ...request, signal: abort.signal }, key))).toMatchObject({
      type: 'RejectedOther',
      reason: 'cancelled',
    });
  });

  it('evicts what waits when it is closed', async () => {
    const { flow } = makeFlow();
    leaseOf(await flow.enqueue(request, key));
    const waiting = flow.enqueue(request, key);
    await flow.close();
    expect(dropOf(await waiting)).toMatchObject({ type: 'EvictedOther', reason: 'shutting-down' });
    expect(dropOf(await flow.enqueue(request, key))).toMatchObject({ type: 'RejectedOther', reason: 'shutting-down' });
  });
});
