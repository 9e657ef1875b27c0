import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  type Dispatched,
  type Drop,
  FlowController,
  type FlowControllerOptions,
  type Outcome,
  roundRobin,
} from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';

function controller(options: Partial<FlowControllerOptions> = {}): { flow: FlowController; clock: ManualClock } {
  const clock = new ManualClock();
  const flow = new FlowController({
    saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
    clock,
    ...options,
  });
  return { flow, clock };
}

function lease(outcome: Outcome | undefined): Dispatched['lease'] {
  if (outcome?.type !== 'Dispatched') throw new Error(`expected a dispatch, got ${outcome?.type}`);
  return outcome.lease;
}

function drop(outcome: Outcome): Drop {
  if (outcome.type === 'Dispatched') throw new Error('expected a drop');
  return outcome;
}

const key = { fairnessId: 'tenant-a', priority: 0 };
const request = { byteSize: 10 };

describe('FlowController', () => {
  it('dispatches at once while the gate is open, and holds the next request until the lease is released', async () => {
    const { flow } = controller();
    const first = lease(await flow.enqueue(request, key));
    const second = flow.enqueue(request, key);
    expect(flow.stats()).toMatchObject({ waiting: 1, inFlight: 1, dispatched: 1, isGateClosed: true });
    first.release();
    lease(await second).release();
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0, dispatched: 2, enqueued: 2, released: 2 });
  });

  it('serves higher bands first, and flows of one band in turn', async () => {
    const { flow } = controller({ bands: [{ priority: 0, fairness: roundRobin() }] });
    const order: string[] = [];
    const running = lease(await flow.enqueue(request, key));
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
      lease(outcome).release();
    });
    running.release();
    await Promise.all(all);
    expect(order).toEqual(['d5', 'a0', 'b0', 'a0', 'a0', 'c-1']);
  });

  it('names the limit that a request did not fit into', async () => {
    const { flow } = controller({ limits: { maxRequests: 1, maxBytes: 100 } });
    lease(await flow.enqueue(request, key));
    void flow.enqueue(request, key);
    const outcome = drop(await flow.enqueue(request, key));
    expect(outcome).toMatchObject({
      type: 'RejectedCapacity',
      reason: 'global-max-requests',
      limit: { max: 1, used: 1 },
    });
    await flow.close();
  });

  it('expires a waiting request exactly at its TTL', async () => {
    const { flow, clock } = controller({ defaultRequestTtl: '60s' });
    lease(await flow.enqueue(request, key));
    const waiting = flow.enqueue(request, key);
    clock.advance(59_999);
    expect(flow.stats().waiting).toBe(1);
    clock.advance(1);
    expect(flow.stats().waiting).toBe(0);
    expect(drop(await waiting)).toMatchObject({ type: 'EvictedTTL', reason: 'ttl-expired', queuedMs: 60_000 });
    expect(clock.pendingTimers).toBe(0);
  });

  it('drops a waiting request when its signal aborts', async () => {
    const { flow } = controller();
    const abort = new AbortController();
    lease(await flow.enqueue(request, key));
    const waiting = flow.enqueue({ ...request, signal: abort.signal }, key);
    abort.abort();
    expect(flow.stats().waiting).toBe(0);
    expect(drop(await waiting).type).toBe('EvictedContextCancelled');
    expect(drop(await flow.enqueue({ ...request, signal: abort.signal }, key))).toMatchObject({
      type: 'RejectedOther',
      reason: 'cancelled',
    });
  });

  it('evicts what waits when it is closed', async () => {
    const { flow } = controller();
    lease(await flow.enqueue(request, key));
    const waiting = flow.enqueue(request, key);
    await flow.close();
    expect(drop(await waiting)).toMatchObject({ type: 'EvictedOther', reason: 'shutting-down' });
    expect(drop(await flow.enqueue(request, key))).toMatchObject({ type: 'RejectedOther', reason: 'shutting-down' });
  });
});
