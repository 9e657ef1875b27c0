/** Policies and a real controller: what is refused, and what the policies get back. */
import { describe, expect, it } from 'vitest';
import {
  EndpointPool,
  FlowController,
  gaieLegacy,
  tenantBudgets,
  tokenBucket,
  utilizationDetector,
} from '../../src/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { dropOf, leaseOf, makeFlow, turns } from '../support/flow.js';

const batch = { fairnessId: 'alice', priority: -1 };

describe('admission policies in front of the queue', () => {
  it('reject with the policy, its words and its time', () => {
    const { flow } = makeFlow({ admission: tokenBucket({ capacity: 100, refillPerSecond: 10 }) });
    leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 60 }, batch));
    expect(dropOf(flow.tryEnqueue({ byteSize: 1, tokens: 60 }, batch))).toMatchObject({
      reason: 'refused',
      policy: 'token-bucket',
      detail: 'the request costs 60 tokens of 40 left',
      retryAfterMs: 2000,
      queuedMs: 0,
    });
  });

  it('get back what expired in the queue, and settle what ran', async () => {
    const bucket = tokenBucket({ capacity: 100, refillPerSecond: 0.001, settle: true });
    const { flow, clock } = makeFlow({ admission: bucket, defaultRequestTtl: 1000 });
    const lease = leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 60 }, batch));
    const waiting = flow.enqueue({ byteSize: 1, tokens: 30 }, batch);
    await turns();
    expect(bucket.tokens).toBeCloseTo(10, 2);
    clock.advance(1000);
    expect(dropOf(await waiting).type).toBe('EvictedTTL');
    expect(bucket.tokens).toBeCloseTo(40, 2);
    lease.report({ promptTokens: 20, completionTokens: 5 });
    lease.release();
    expect(bucket.tokens).toBeCloseTo(75, 2);
  });

  it('count waiting and running requests of a tenant until they end', async () => {
    const budgets = tenantBudgets({ budgets: { alice: 0.5 }, capacity: 4 });
    const { flow } = makeFlow({ admission: budgets });
    const abort = new AbortController();
    const lease = leaseOf(flow.tryEnqueue({ byteSize: 1 }, batch));
    const waiting = flow.enqueue({ byteSize: 1, signal: abort.signal }, batch);
    expect(dropOf(await flow.enqueue({ byteSize: 1 }, batch)).policy).toBe('tenant-budgets');
    expect(budgets.held('alice')).toBe(2);
    abort.abort();
    await waiting;
    expect(budgets.held('alice')).toBe(1);
    lease.release();
    expect(budgets.held('alice')).toBe(0);
  });

  it('read the saturation of whichever detector the controller has', () => {
    const pool = new EndpointPool();
    pool.add('a');
    const clock = new ManualClock();
    const flow = new FlowController({
      saturationDetector: utilizationDetector({ queueDepthThreshold: 5 }),
      admission: gaieLegacy(),
      pool,
      clock,
    });
    pool.report('a', { waitingQueueSize: 10, runningRequests: 0, kvCacheUsage: 0 });
    expect(dropOf(flow.tryEnqueue({ byteSize: 1 }, batch))).toMatchObject({
      policy: 'gaie-legacy',
      detail: 'the pool is full (saturation 2.00), and the request is sheddable',
    });
    pool.report('a', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
    leaseOf(flow.tryEnqueue({ byteSize: 1 }, batch));
  });
});
