import { describe, expect, it } from 'vitest';
import { tierShed } from '../../src/admission/tier-shed.js';
import { admissionView } from '../support/pools.js';
import { refusalOf, sheddable, standard } from './support.js';

describe('tierShed', () => {
  it('by default rejects sheddable requests at any load', () => {
    const policy = tierShed();
    expect(policy.admit({}, sheddable, admissionView([{}, {}]))).toBe('admit');
    const refusal = refusalOf(policy.admit({}, sheddable, admissionView([{}, { running: 1 }])));
    expect(refusal.reason).toBe('priority -1 is below 0, the lowest admitted at load 1');
    expect(policy.admit({}, standard, admissionView([{ running: 1 }]))).toBe('admit');
  });

  it('adds what an endpoint reported to what is in flight, and looks at the busiest endpoint', () => {
    const policy = tierShed({ overloadThreshold: 9 });
    expect(policy.admit({}, sheddable, admissionView([{ waiting: 3, running: 3, inFlight: 3 }, { waiting: 9 }]))).toBe(
      'admit',
    );
    expect(
      refusalOf(policy.admit({}, sheddable, admissionView([{ waiting: 1 }, { waiting: 3, running: 3, inFlight: 4 }]))),
    ).toBeDefined();
  });

  it('counts what is in flight on an endpoint that has not reported', () => {
    expect(
      refusalOf(tierShed().admit({}, sheddable, admissionView([{ inFlight: 1, hasReported: false }]))),
    ).toBeDefined();
  });

  it('counts what waits at an endpoint as well as what runs there', () => {
    const policy = tierShed({ overloadThreshold: 4 });
    expect(policy.type).toBe('tier-shed');
    expect(policy.admit({}, sheddable, admissionView([{ waiting: 2, running: 2 }]))).toBe('admit');
    expect(refusalOf(policy.admit({}, sheddable, admissionView([{ waiting: 3, running: 2 }]))).reason).toContain(
      'load 5',
    );
  });

  it('is not overloaded without endpoints', () => {
    expect(tierShed().admit({}, sheddable, admissionView([]))).toBe('admit');
  });

  it('admits from its minimum up', () => {
    const policy = tierShed({ minAdmitPriority: 3 });
    const admitted = [4, 3, 2, -1].map(
      (priority) => policy.admit({}, { fairnessId: 'a', priority }, admissionView([{ running: 1 }])) === 'admit',
    );
    expect(admitted).toEqual([true, true, false, false]);
  });

  it('rejects wrong options', () => {
    expect(() => tierShed({ overloadThreshold: -1, minAdmitPriority: 0.5 })).toThrow(
      'tierShed: 2 problems\n  overloadThreshold: expected an integer from 0 up; got -1 (number)\n  minAdmitPriority: expected a safe integer; got 0.5 (number)',
    );
  });
});
