import { describe, expect, it } from 'vitest';
import { programAware, roundRobin } from '../../../src/index.js';
import { key, leaseOf, makeFlow, request } from '../../support/flow.js';

describe('stats().fairnessIndex', () => {
  it('is the Jain index of the fairness policy that keeps one', async () => {
    const fairness = programAware();
    const { flow, clock } = makeFlow({ bands: [{ priority: 0, fairness }] });
    expect(flow.stats().fairnessIndex).toBe(1);
    const first = leaseOf(await flow.enqueue(request, key('quick')));
    const waiting = flow.enqueue(request, key('slow'));
    clock.advance(1000);
    first.release();
    leaseOf(await waiting).release();
    // Mean waits of 0 and 1000 ms: (Σx)² / (n · Σx²) = 1 / 2.
    expect(flow.stats().fairnessIndex).toBe(0.5);
    expect(flow.stats().fairnessIndex).toBe(fairness.fairnessIndex);
  });

  it('is undefined where no policy keeps one', () => {
    expect(makeFlow({ defaultBand: { fairness: roundRobin() } }).flow.stats().fairnessIndex).toBeUndefined();
  });
});
