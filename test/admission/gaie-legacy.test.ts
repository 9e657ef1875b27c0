import { describe, expect, it } from 'vitest';
import { gaieLegacy } from '../../src/admission/gaie-legacy.js';
import { admissionView } from '../support/pools.js';
import { refusalOf, sheddable, standard } from './support.js';

describe('gaieLegacy', () => {
  it('admits priority 0 and more without reading the saturation', () => {
    const view = admissionView([{}], { saturation: 5 });
    expect(gaieLegacy().admit({}, standard, view)).toBe('admit');
    expect(view.reads).toBe(0);
  });

  it('rejects sheddable requests from saturation 1 on, by whatever detector the controller has', () => {
    expect(gaieLegacy().admit({}, sheddable, admissionView([{}], { saturation: 0.99 }))).toBe('admit');
    const refusal = refusalOf(gaieLegacy().admit({}, sheddable, admissionView([{}], { saturation: 1 })));
    expect(refusal.reason).toBe('the pool is full (saturation 1.00), and the request is sheddable');
  });

  it('rejects sheddable requests when the saturation is no number', () => {
    expect(refusalOf(gaieLegacy().admit({}, sheddable, admissionView([{}], { saturation: Number.NaN })))).toBeDefined();
  });

  it('with thresholds of its own reads the reports, and nothing else', () => {
    const policy = gaieLegacy({ queueDepthThreshold: 10 });
    const view = admissionView([{ waiting: 10 }, { kv: 0.4 }], { saturation: 5 });
    expect(policy.admit({}, sheddable, view)).toBe('admit');
    expect(view.reads).toBe(0);
    expect(refusalOf(policy.admit({}, sheddable, admissionView([{ waiting: 10 }, { kv: 0.8 }])))).toBeDefined();
  });

  it('takes an endpoint without a report, and a pool without endpoints, for full', () => {
    const policy = gaieLegacy({ kvCacheUtilThreshold: 0.9 });
    expect(refusalOf(policy.admit({}, sheddable, admissionView([{ hasReported: false }])))).toBeDefined();
    expect(refusalOf(policy.admit({}, sheddable, admissionView([])))).toBeDefined();
  });

  it('takes five waiting requests for a full queue where only the other threshold is given', () => {
    const policy = gaieLegacy({ kvCacheUtilThreshold: 0.9 });
    expect(policy.admit({}, sheddable, admissionView([{ waiting: 4 }]))).toBe('admit');
    expect(refusalOf(policy.admit({}, sheddable, admissionView([{ waiting: 5 }])))).toBeDefined();
  });

  it('rejects wrong thresholds', () => {
    expect(gaieLegacy().type).toBe('gaie-legacy');
    expect(() => gaieLegacy({ queueDepthThreshold: 0, kvCacheUtilThreshold: 1.1 })).toThrow('gaieLegacy: 2 problems');
  });
});
