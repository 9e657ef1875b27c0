import { describe, expect, it } from 'vitest';
import type { AdmissionPolicy } from '../../src/index.js';
import { dropOf, key, leaseOf, makeFlow, record, request, runNow } from '../support/flow.js';

describe('an admission policy that fails', () => {
  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('faulty');
      },
    ],
    ['answers nothing', () => undefined],
    ['answers null', () => null],
    ['answers yes', () => true],
    ['answers a refusal without a reason', () => ({ cause: 'saturated' })],
    ['answers a promise', () => Promise.resolve('admit')],
  ])(
    'because it %s, lets the request in, is reported, and is given nothing back that it did not admit',
    async (_, admit) => {
      let released = 0;
      const admission: AdmissionPolicy = { type: 'faulty', admit: admit as () => 'admit', released: () => released++ };
      const { flow, clock } = makeFlow({ admission });
      const errors = record(flow, 'pluginError');
      runNow(flow).release();
      const held = runNow(flow);
      const waiting = flow.enqueue({ ...request, ttlMs: 10 }, key());
      expect(flow.tryEnqueue(request, key())).toBeUndefined();
      clock.advance(10);
      expect(dropOf(await waiting).type).toBe('EvictedTTL');
      held.release();
      expect(errors).toHaveLength(4);
      expect(errors[0]).toMatchObject({ kind: 'admission', type: 'faulty', error: expect.any(Error) });
      expect(released).toBe(0);
    },
  );

  it('in released is reported, and the request goes its way', async () => {
    const admission: AdmissionPolicy = {
      type: 'faulty',
      admit: () => 'admit',
      released: () => {
        throw new Error('faulty');
      },
    };
    const { flow } = makeFlow({ admission });
    leaseOf(await flow.enqueue(request, key())).release();
    expect(flow.stats()).toMatchObject({ inFlight: 0, released: 1, pluginErrors: 1 });
  });
});

describe('an admission policy', () => {
  it('is given back each request that it admitted, once, however it ended', async () => {
    let [admitted, released] = [0, 0];
    const admission: AdmissionPolicy = {
      type: 'counting',
      admit: () => {
        admitted++;
        return 'admit';
      },
      released: () => released++,
    };
    const { flow, clock } = makeFlow({ admission, limits: { maxRequests: 3 } });
    const abort = new AbortController();
    const held = runNow(flow);
    void flow.enqueue({ ...request, ttlMs: 10 }, key('expires'));
    void flow.enqueue({ ...request, signal: abort.signal }, key('aborts'));
    void flow.enqueue(request, key('stays'));
    expect([admitted, released]).toEqual([4, 0]);
    void flow.enqueue(request, key('does not fit'));
    expect(flow.tryEnqueue({ byteSize: 1e12 }, key('too large'))?.type).toBe('RejectedCapacity');
    expect([admitted, released]).toEqual([6, 2]);
    clock.advance(10);
    abort.abort();
    expect(flow.tryEnqueue(request, key('turned away'))).toBeUndefined();
    expect([admitted, released]).toEqual([7, 5]);
    held.release();
    held.release();
    expect([admitted, released]).toEqual([7, 6]);
    await flow.close();
    expect(flow.stats()).toMatchObject({ inFlight: 1 });
    void flow.enqueue(request, key('too late'));
    expect([admitted, released]).toEqual([7, 6]);
  });
});
