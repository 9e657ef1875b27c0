import { describe, expect, it } from 'vitest';
import type { AdmissionPolicy, AdmissionView, Rejection } from '../../src/admission/admission-policy.js';
import { type AdmittedItem, GuardedAdmission } from '../../src/admission/guarded-admission.js';
import type { Gate } from '../../src/gate/gate.js';
import { admissionView } from '../support/pools.js';
import { standard } from './support.js';

const { pool } = admissionView();

/** The guard around a policy, with a gate that counts its readings; what the policy did wrong is in `faults`. */
function make(policy?: Partial<AdmissionPolicy> | { admit?: unknown; released?: unknown }) {
  const faults: string[] = [];
  const readAt: number[] = [];
  const gate = {
    measure(nowMs: number) {
      readAt.push(nowMs);
      return readAt.length / 10;
    },
  } as unknown as Gate;
  const given = policy && ({ type: 'x', ...policy } as AdmissionPolicy);
  const admission = new GuardedAdmission(given, pool, gate, {
    pluginFailed: (kind, type, error) => void faults.push(`${kind} ${type}: ${String(error)}`),
  });
  return {
    admission,
    faults,
    readAt,
    rejection: (nowMs = 0, waiting = 0) => admission.rejection({}, standard, nowMs, waiting),
  };
}

/** A request that the policy let in. */
function admitted(policy: AdmissionPolicy | undefined): AdmittedItem {
  return { ...standard, request: {}, admittedBy: policy };
}

describe('a decision', () => {
  it('is told the instant, the pool and how many wait', () => {
    const told: unknown[] = [];
    const { rejection } = make({
      admit(_request: unknown, key: unknown, view: AdmissionView) {
        told.push([key, view.nowMs, view.waiting, view.pool === pool]);
        return 'admit';
      },
    });
    expect(rejection(40, 3)).toBeUndefined();
    expect(told).toEqual([[standard, 40, 3, true]]);
  });

  it('reads the saturation when it is asked for, once, and anew for the next request', () => {
    const read: number[] = [];
    let times = 0;
    const { rejection, readAt } = make({
      admit(_request: unknown, _key: unknown, view: AdmissionView) {
        for (let i = 0; i < times; i++) read.push(view.saturation());
        return 'admit';
      },
    });
    rejection(1);
    expect(readAt).toEqual([]);
    times = 2;
    rejection(2);
    rejection(3);
    expect([readAt, read]).toEqual([
      [2, 3],
      [0.1, 0.1, 0.2, 0.2],
    ]);
  });

  it('is not asked for where there is no policy', () => {
    const { admission, rejection, faults } = make();
    expect([rejection(), admission.admittedBy, admission.hearsEnds, faults]).toEqual([undefined, undefined, false, []]);
  });
});

describe('the policy that let the last request in', () => {
  it('is known, until the next is rejected', () => {
    let answer: 'admit' | Rejection = 'admit';
    const { admission, rejection } = make({ admit: () => answer, released: () => {} });
    rejection();
    expect(admission.admittedBy).toBe(admission.policy);
    answer = { reason: 'no' };
    rejection();
    expect(admission.admittedBy).toBeUndefined();
  });

  it('is none where the policy failed', () => {
    const { admission, rejection } = make({
      admit() {
        throw new Error('broken');
      },
    });
    expect([rejection(), admission.admittedBy]).toEqual([undefined, undefined]);
  });
});

describe('a rejection', () => {
  it('is copied field by field, and named after the policy unless it names one', () => {
    const { rejection } = make({ admit: () => ({ reason: 'no', other: 1 }) });
    expect(rejection()).toEqual({ reason: 'no', policy: 'x', cause: undefined, retryAfterMs: undefined });
    const whole: Rejection = { reason: 'no', policy: 'inner', cause: 'overloaded', retryAfterMs: 0 };
    expect(make({ admit: () => whole }).rejection()).toEqual(whole);
    expect(make({ admit: () => ({ ...whole, cause: 'saturated', retryAfterMs: 5 }) }).rejection()).toMatchObject({
      retryAfterMs: 5,
    });
  });

  it.each([
    ['no reason', {}],
    ['a reason that is no text', { reason: 5 }],
    ['a policy that is no text', { reason: 'no', policy: 5 }],
    ['a cause that is none', { reason: 'no', cause: 'tired' }],
    ['a time that is negative', { reason: 'no', retryAfterMs: -1 }],
    ['a time that is NaN', { reason: 'no', retryAfterMs: Number.NaN }],
    ['a time that is text', { reason: 'no', retryAfterMs: '5' }],
  ])('with %s is none: the request comes in, and the fault is told', (_, answer) => {
    const { rejection, faults } = make({ admit: () => answer, released: () => {} });
    expect(rejection()).toBeUndefined();
    expect(faults).toEqual([
      expect.stringContaining('admission x: TypeError: a rejection must have a reason, and may have a policy'),
    ]);
  });

  it.each([['admitted'], [true], [undefined], [null], [5]])('cannot be %s', (answer) => {
    const { rejection, faults, admission } = make({ admit: () => answer, released: () => {} });
    expect([rejection(), admission.admittedBy]).toEqual([undefined, undefined]);
    expect(faults).toEqual([expect.stringContaining('admit must return "admit" or an object with a reason')]);
  });

  it('with a promise in a field is told of when that is rejected', async () => {
    const { rejection, faults } = make({ admit: () => ({ reason: Promise.reject(new Error('late')) }) });
    rejection();
    await new Promise(setImmediate);
    expect(faults.at(-1)).toBe('admission x: Error: late');
  });
});

describe('the end of a request', () => {
  it('is told to the policy that let it in, once, also when another one has replaced it', () => {
    const told: unknown[] = [];
    const { admission } = make({
      admit: () => 'admit',
      released: (...given: unknown[]) => void told.push(given.slice(2)),
    });
    const item = admitted(admission.policy);
    admission.configure(undefined);
    const usage = { promptTokens: 1, completionTokens: 2 };
    admission.ended({ item, usage }, 'released', 30);
    admission.ended({ item, usage }, 'released', 40);
    expect([told, item.admittedBy]).toEqual([[[usage, 30]], undefined]);
  });

  it('is of interest once a policy has the hook, and from then on', () => {
    const { admission, faults } = make({ admit: () => 'admit' });
    expect(admission.hearsEnds).toBe(false);
    admission.dropped(admitted(admission.policy), 0);
    admission.configure({ type: 'y', admit: () => 'admit', released: () => {} });
    admission.configure(undefined);
    expect([admission.hearsEnds, faults]).toEqual([true, []]);
  });

  it('goes on when the hook throws, or answers a promise that is rejected', async () => {
    const throwing = make({
      admit: () => 'admit',
      released() {
        throw new Error('broken');
      },
    });
    throwing.admission.dropped(admitted(throwing.admission.policy), 0);
    expect(throwing.faults).toEqual(['admission x: Error: broken']);
    const late = make({ admit: () => 'admit', released: () => Promise.reject(new Error('late')) });
    late.admission.dropped(admitted(late.admission.policy), 0);
    await new Promise(setImmediate);
    expect(late.faults).toEqual(['admission x: Error: late']);
  });
});
