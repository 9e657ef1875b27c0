import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type TokenBucketOptions, tokenBucket } from '../../src/admission/token-bucket.js';
import { type AdmissionPolicy, allOf, defaultRegistry } from '../../src/index.js';
import { key, leaseOf, makeFlow } from '../support/flow.js';
import { admissionView } from '../support/pools.js';
import { refusalOf, standard } from './support.js';

function at(nowMs: number) {
  return admissionView([{}], { nowMs });
}

const ran = (promptTokens: number, completionTokens = 0) => ({ promptTokens, completionTokens });

describe('tokenBucket', () => {
  it('starts full, and takes the tokens of what it admits', () => {
    const bucket = tokenBucket({ capacity: 100, refillPerSecond: 10 });
    expect(bucket.tokens).toBe(100);
    expect(bucket.admit({ tokens: 60 }, standard, at(5000))).toBe('admit');
    expect(bucket.tokens).toBe(40);
  });

  it('rejects what it cannot pay, takes nothing for it, and says when it could', () => {
    const bucket = tokenBucket({ capacity: 100, refillPerSecond: 10 });
    bucket.admit({ tokens: 60 }, standard, at(0));
    const refusal = refusalOf(bucket.admit({ tokens: 50 }, standard, at(0)));
    expect(refusal).toEqual({ reason: 'the request costs 50 tokens of 40 left', retryAfterMs: 1000 });
    expect(bucket.tokens).toBe(40);
    expect(bucket.admit({ tokens: 50 }, standard, at(1000))).toBe('admit');
  });

  it('keeps the refill of a call that it rejects, and never holds more than its capacity', () => {
    const bucket = tokenBucket({ capacity: 100, refillPerSecond: 10 });
    bucket.admit({ tokens: 100 }, standard, at(0));
    refusalOf(bucket.admit({ tokens: 100 }, standard, at(5000)));
    expect(bucket.tokens).toBe(50);
    bucket.admit({ tokens: 0 }, standard, at(60_000));
    expect(bucket.tokens).toBe(100);
  });

  it('does not refill when time stands still or goes back', () => {
    const bucket = tokenBucket({ capacity: 100, refillPerSecond: 10 });
    bucket.admit({ tokens: 100 }, standard, at(1000));
    refusalOf(bucket.admit({ tokens: 1 }, standard, at(0)));
    expect(bucket.tokens).toBe(0);
    refusalOf(bucket.admit({ tokens: 1 }, standard, at(1000)));
    expect(bucket.tokens).toBe(0);
    bucket.admit({ tokens: 1 }, standard, at(1100));
    expect(bucket.tokens).toBe(0);
  });

  it('pays when it has been refilled, in however many steps', () => {
    const bucket = tokenBucket({ capacity: 1, refillPerSecond: 1 });
    // Ten tenths add up to a little less than 1 in binary.
    const answers = Array.from(
      { length: 11 },
      (_, i) => bucket.admit({ tokens: 1 }, standard, at(i * 100)) === 'admit',
    );
    expect(answers).toEqual([true, ...Array<boolean>(9).fill(false), true]);
  });

  it('admits a request without tokens from an empty bucket', () => {
    const bucket = tokenBucket({ capacity: 1, refillPerSecond: 1 });
    bucket.admit({ tokens: 1 }, standard, at(0));
    expect(bucket.admit({}, standard, at(0))).toBe('admit');
  });

  it('counts requests when every request costs 1', () => {
    const bucket = tokenBucket({ capacity: 2, refillPerSecond: 1, cost: () => 1 });
    const answers = [0, 0, 0, 500, 1000].map((nowMs) => bucket.admit({}, standard, at(nowMs)) === 'admit');
    expect(answers).toEqual([true, true, false, false, true]);
  });

  it('hands the request and its key to the cost function', () => {
    const bucket = tokenBucket<{ images: number }>({
      capacity: 10,
      cost: ({ images }, { priority }) => (priority < 0 ? 2 : 1) * images,
    });
    bucket.admit({ images: 3 }, { fairnessId: 'a', priority: -1 }, at(0));
    expect(bucket.tokens).toBe(4);
  });

  it('holds 10,000 tokens and gets 1000 a second back, unless told otherwise', () => {
    const bucket = tokenBucket();
    bucket.admit({ tokens: 10_000 }, standard, at(0));
    expect(bucket.tokens).toBe(0);
    expect(refusalOf(bucket.admit({ tokens: 1000 }, standard, at(500))).retryAfterMs).toBe(500);
    expect([bucket.tokens, bucket.type]).toEqual([500, 'token-bucket']);
  });

  it.each([[undefined], [null], ['text'], [{ tokens: '7' }]])(
    'takes a request like %j for one without tokens',
    (request) => {
      const bucket = tokenBucket({ capacity: 10 });
      expect(bucket.admit(request as never, standard, at(0))).toBe('admit');
      expect(bucket.tokens).toBe(10);
    },
  );

  it('never holds more than its capacity, whatever comes back', () => {
    const bucket = tokenBucket({ capacity: 100, refillPerSecond: 10, settle: true });
    bucket.admit({ tokens: 70 }, standard, at(0));
    bucket.released?.({ tokens: 70 }, standard, ran(10), 60_000);
    expect(bucket.tokens).toBe(100);
    bucket.released?.({ tokens: 70 }, standard, undefined);
    expect(bucket.tokens).toBe(100);
  });

  it('never admits what is larger than the bucket, and gives no time for it', () => {
    const bucket = tokenBucket({ capacity: 500 });
    expect(bucket.admit({ tokens: 512 }, standard, at(0))).toEqual({
      reason: 'the request costs 512 tokens of 500 left; the bucket holds 500',
    });
  });

  it('lets a larger request borrow from a full bucket when told to', () => {
    const bucket = tokenBucket({ capacity: 100, refillPerSecond: 100, oversized: 'borrow' });
    expect(bucket.admit({ tokens: 300 }, standard, at(0))).toBe('admit');
    expect(bucket.tokens).toBe(-200);
    expect(refusalOf(bucket.admit({ tokens: 300 }, standard, at(0))).retryAfterMs).toBe(3000);
    expect(refusalOf(bucket.admit({ tokens: 10 }, standard, at(2000))).reason).toBe(
      'the request costs 10 tokens of 0 left',
    );
    expect(bucket.admit({ tokens: 300 }, standard, at(3000))).toBe('admit');
  });

  it('gives a request that never ran its tokens back', () => {
    const bucket = tokenBucket({ capacity: 100 });
    bucket.admit({ tokens: 70 }, standard, at(0));
    bucket.released?.({ tokens: 70 }, standard, undefined);
    expect(bucket.tokens).toBe(100);
  });

  it('leaves the estimate as it is unless it settles', () => {
    const bucket = tokenBucket({ capacity: 100 });
    bucket.admit({ tokens: 70 }, standard, at(0));
    bucket.released?.({ tokens: 70 }, standard, ran(5));
    expect(bucket.tokens).toBe(30);
  });

  it('settles with what the request reported: refunds and late charges', () => {
    const bucket = tokenBucket({ capacity: 100, settle: true });
    bucket.admit({ tokens: 70 }, standard, at(0));
    bucket.released?.({ tokens: 70 }, standard, ran(10, 30));
    expect(bucket.tokens).toBe(60);
    bucket.admit({ tokens: 60 }, standard, at(0));
    bucket.released?.({ tokens: 60 }, standard, ran(10, 90));
    expect(bucket.tokens).toBe(-40);
  });

  it('does not read silence as a request that cost nothing', () => {
    const bucket = tokenBucket({ capacity: 100, settle: true });
    bucket.admit({ tokens: 70 }, standard, at(0));
    bucket.released?.({ tokens: 70 }, standard, ran(0, 0));
    expect(bucket.tokens).toBe(30);
  });

  it('settles by a function of the usage', () => {
    const bucket = tokenBucket({
      capacity: 100,
      settle: ({ promptTokens, completionTokens }) => promptTokens + 3 * completionTokens,
    });
    bucket.admit({ tokens: 70 }, standard, at(0));
    bucket.released?.({ tokens: 70 }, standard, ran(10, 10));
    expect(bucket.tokens).toBe(60);
  });

  it('settles against a balance that is refilled up to the end of the request, as GCRA does', () => {
    const bucket = tokenBucket({ capacity: 1000, refillPerSecond: 100, settle: true });
    // Balances of a GCRA script: time, cost or later charge, balance afterwards, wait of a refusal.
    const rows = [
      ['take', 5000, 1, 999],
      ['settle', 5000, -50, 1000],
      ['take', 6000, 50, 950],
      ['refused', 6005, 1000, 950.5, 495],
      ['take', 6005, 10, 940.5],
      ['refused', 6025, 1000, 942.5, 575],
      ['take', 6030, 400, 543],
      ['take', 6130, 1, 552],
      ['settle', 11_130, 300, 700],
      ['take', 11_135, 400, 300.5],
      ['take', 11_235, 10, 300.5],
      ['take', 11_236, 10, 290.6],
    ] as const;
    for (const [step, nowMs, cost, balance, retryAfterMs] of rows) {
      if (step === 'settle')
        bucket.released?.({ tokens: Math.max(-cost, 0) }, standard, cost < 0 ? undefined : ran(cost), nowMs);
      else if (step === 'take') expect(bucket.admit({ tokens: cost }, standard, at(nowMs))).toBe('admit');
      else expect(refusalOf(bucket.admit({ tokens: cost }, standard, at(nowMs))).retryAfterMs).toBe(retryAfterMs);
      expect(bucket.tokens).toBeCloseTo(balance, 9);
    }
  });

  it('is told by the controller, alone and among others, when a request ended', () => {
    for (const wrap of [(bucket: AdmissionPolicy) => bucket, (bucket: AdmissionPolicy) => allOf(bucket)]) {
      const bucket = tokenBucket({ capacity: 1000, refillPerSecond: 100, settle: true });
      const { flow, clock } = makeFlow({ admission: wrap(bucket as AdmissionPolicy) });
      const lease = leaseOf(flow.tryEnqueue({ byteSize: 1, tokens: 600 }, key()));
      clock.advance(5000);
      lease.report({ promptTokens: 700 });
      lease.release();
      expect(bucket.tokens).toBe(800);
    }
  });

  it('throws at a cost that is no number from 0 up, and keeps its balance', () => {
    for (const cost of [Number.NaN, -1, Number.POSITIVE_INFINITY]) {
      const bucket = tokenBucket({ capacity: 100, cost: () => cost });
      expect(() => bucket.admit({}, standard, at(0))).toThrow(`a cost must be a finite number from 0 up; got ${cost}`);
      expect(bucket.tokens).toBe(100);
    }
  });

  it('rejects wrong options, all of them at once', () => {
    const wrong = { capacity: 0, refillPerSecond: Number.NaN, oversized: 'x', settle: 1, cost: 1, size: 1 };
    expect(() => tokenBucket(wrong as unknown as TokenBucketOptions)).toThrow('tokenBucket: 6 problems');
    expect(() => tokenBucket({ capacity: Number.POSITIVE_INFINITY })).toThrow('capacity: expected a number above 0');
  });

  it('is known to configuration files, without its functions', () => {
    expect(defaultRegistry().create('token-bucket', { capacity: 10, refillPerSecond: 1, settle: true }).type).toBe(
      'token-bucket',
    );
    expect(() => defaultRegistry().create('token-bucket', { cost: () => 1 })).toThrow('parameters.cost');
  });

  it('never admits more than capacity + refill · span, and what it says about time is true', () => {
    const step = fc.record({ waitMs: fc.integer({ min: 0, max: 2000 }), tokens: fc.integer({ min: 0, max: 120 }) });
    void fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const bucket = tokenBucket({ capacity: 100, refillPerSecond: 30 });
        let nowMs = 0;
        let admitted = 0;
        for (const { waitMs, tokens } of steps) {
          nowMs += waitMs;
          let answer = bucket.admit({ tokens }, standard, at(nowMs));
          if (answer !== 'admit' && answer.retryAfterMs !== undefined) {
            nowMs += answer.retryAfterMs;
            answer = bucket.admit({ tokens }, standard, at(nowMs));
            expect(answer).toBe('admit');
          }
          if (answer === 'admit') admitted += tokens;
          else expect(tokens).toBeGreaterThan(100);
          expect(admitted).toBeLessThanOrEqual(100 + (30 * nowMs) / 1000 + 1e-6);
        }
      }),
    );
  });
});
