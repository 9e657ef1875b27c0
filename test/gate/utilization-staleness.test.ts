import { describe, expect, it } from 'vitest';
import { EndpointPool, utilizationDetector } from '../../src/index.js';

function poolOf(...kvCacheUsage: (number | undefined)[]): EndpointPool {
  const pool = new EndpointPool();
  for (const [index, kv] of kvCacheUsage.entries()) {
    pool.add(`gpu-${index}`);
    if (kv !== undefined) pool.report(`gpu-${index}`, { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: kv, sampledAtMs: 0 });
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

  it('reads a pool of stale endpoints as full, or as empty', () => {
    expect(saturated.saturation(poolOf(undefined, undefined), 0)).toBe(1);
    expect(ignore.saturation(poolOf(undefined, undefined), 0)).toBe(0);
    expect(ignore.saturation(new EndpointPool(), 0)).toBe(1);
  });
});
