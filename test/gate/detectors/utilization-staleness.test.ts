import { describe, expect, it } from 'vitest';
import { EndpointPool, utilizationDetector } from '../../../src/index.js';
import { key, leaseOf, makeFlow, request } from '../../support/flow.js';

function poolOf(...kvCacheUsage: (number | undefined)[]): EndpointPool {
  const pool = new EndpointPool();
  for (const [index, kv] of kvCacheUsage.entries()) {
    pool.add(`gpu-${index}`);
    if (kv !== undefined)
      pool.report(`gpu-${index}`, { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: kv, sampledAtMs: 0 });
  }
  return pool;
}

describe('stalenessPolicy', () => {
  const saturated = utilizationDetector({ kvCacheUtilThreshold: 1 });
  const ignore = utilizationDetector({ kvCacheUtilThreshold: 1, stalenessPolicy: 'ignore' });

  it('counts a stale endpoint as full, or leaves it out of the mean', () => {
    const pool = poolOf(0.5, undefined, 0.25);
    expect(saturated.saturation(pool, 0)).toBeCloseTo(1.75 / 3, 12);
    expect(ignore.saturation(pool, 0)).toBe(0.375);
    expect(ignore.staleEndpoints).toBe(1);
  });

  it('goes on by the last known figures, brought down as requests end', () => {
    const lastKnown = utilizationDetector({ queueDepthThreshold: 4, stalenessPolicy: 'last-known' });
    const pool = poolOf(undefined);
    const { flow, clock } = makeFlow({ pool, saturationDetector: lastKnown });
    const send = () => leaseOf(flow.tryEnqueue(request, key()));
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
    pool.report('gpu-0', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
    const leases = [send(), send(), send()];
    pool.report('gpu-0', { waitingQueueSize: 1, runningRequests: 2, kvCacheUsage: 0.4 });
    clock.advance(10_000);
    const read = () => lastKnown.saturation(pool, clock.now());
    expect([read(), lastKnown.staleEndpoints]).toEqual([0.5, 1]);
    leases.push(send(), send(), send());
    expect([read(), flow.tryEnqueue(request, key())]).toEqual([1, undefined]);
    for (const lease of leases.splice(0, 5)) lease.release();
    expect(read()).toBe(0.25);
    leases[0]?.release();
    expect(read()).toBe(0);
  });

  it('counts an endpoint that never reported as full, where the last known figures count', () => {
    const lastKnown = utilizationDetector({ stalenessPolicy: 'last-known', kvCacheUtilThreshold: 1 });
    expect(lastKnown.saturation(poolOf(undefined), 0)).toBe(1);
    expect(lastKnown.saturation(poolOf(undefined, 0.5), 0)).toBe(0.75);
  });

  it('says to which endpoints it is blind, and counts those it was asked about as stale', () => {
    const blindTo = (stalenessPolicy: 'saturated' | 'last-known' | 'ignore', nowMs: number): unknown[] => {
      const detector = utilizationDetector({ stalenessPolicy });
      const blind = poolOf(0.5, undefined).endpoints.map((endpoint) => detector.isBlindTo?.(endpoint, nowMs));
      return [...blind, detector.staleEndpoints];
    };
    expect([blindTo('saturated', 0), blindTo('saturated', 1000)]).toEqual([
      [false, true, 1],
      [true, true, 2],
    ]);
    // The last figures are as good as none are bad; and what is left out of the mean is still sent to.
    expect(blindTo('last-known', 1000)).toEqual([false, true, 2]);
    expect(blindTo('ignore', 1000)).toEqual([undefined, undefined, 0]);
  });

  it('reads a pool of stale endpoints as full, or as empty', () => {
    expect(saturated.saturation(poolOf(undefined, undefined), 0)).toBe(1);
    expect(ignore.saturation(poolOf(undefined, undefined), 0)).toBe(0);
    expect(ignore.saturation(new EndpointPool(), 0)).toBe(1);
  });
});
