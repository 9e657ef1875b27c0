import { describe, expect, it } from 'vitest';
import { meanUtilization } from '../../src/admission/mean-utilization.js';
import { admissionView, type EndpointFigures } from '../support/pools.js';

const of = (...endpoints: EndpointFigures[]): number => meanUtilization(admissionView(endpoints).pool, 10, 0.8);

describe('meanUtilization', () => {
  it('is the mean over endpoints of whichever of queue and cache is fuller', () => {
    expect(of({ waiting: 5, kv: 0.2 })).toBe(0.5);
    expect(of({ waiting: 1, kv: 0.6 })).toBeCloseTo(0.75);
    expect(of({ waiting: 5 }, { waiting: 10 }, { kv: 1.2 })).toBeCloseTo(1);
  });

  it('counts an endpoint that has not reported as full, and a pool without endpoints too', () => {
    expect(of({ waiting: 5, hasReported: false }, {})).toBe(0.5);
    expect(of()).toBe(1);
  });
});
