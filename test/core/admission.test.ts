import { describe, expect, it } from 'vitest';
import { type AdmissionPolicy, EndpointPool } from '../../src/index.js';
import { dial, dropOf, key, leaseOf, makeFlow, record, request, runNow, turns } from '../support/flow.js';

/** Counts what it admitted and got back; refuses fairness IDs that begin with "no". */
function counting(): AdmissionPolicy & { admitted: number; ended: string[] } {
  return {
    type: 'counting',
    admitted: 0,
    ended: [],
    admit(_request, { fairnessId }, view) {
      if (fairnessId.startsWith('no'))
        return { reason: `saturation ${view.saturation()}, waiting ${view.waiting}`, retryAfterMs: 1500 };
      this.admitted++;
      return 'admit';
    },
    released(_request, { fairnessId }, usage) {
      this.ended.push(`${fairnessId} ${usage === undefined ? 'dropped' : usage.completionTokens}`);
    },
  };
}

describe('an admission policy', () => {
  it('that hears of ends keeps the payloads of those alone whom it admitted', async () => {
    const detector = dial(1, true);
    const { flow } = makeFlow({ saturationDetector: detector });
    const dispatched = record(flow, 'dispatched');
    void flow.enqueue(request, key('before'));
    flow.reconfigure({ admission: counting() });
    const own = { byteSize: 1 };
    void flow.enqueue(own, key('after'));
    detector.turnTo(0);
    expect(dispatched.map(({ item }) => [item.fairnessId, item.request])).toEqual([
      ['before', undefined],
      ['after', own],
    ]);
    for (const { lease } of dispatched) lease.release();
    expect(dispatched.map(({ item }) => item.request)).toEqual([undefined, undefined]);
  });

  it('rejects before anything is queued, and its words are in the drop', async () => {
    const { flow } = makeFlow({ admission: counting() });
    runNow(flow);
    void flow.enqueue(request, key());
    expect(dropOf(await flow.enqueue(request, key('nobody')))).toMatchObject({
      type: 'RejectedCapacity',
      reason: 'refused',
      policy: 'counting',
      detail: 'saturation 1, waiting 1',
      retryAfterMs: 1500,
    });
  });

  it('hears once of the end of every request that it admitted, whichever way it ends', async () => {
    const admission = counting();
    const { flow, clock } = makeFlow({ admission, limits: { maxRequests: 2 } });
    const abort = new AbortController();
    const lease = leaseOf(await flow.enqueue(request, key('run')));
    void flow.enqueue({ ...request, signal: abort.signal }, key('abort'));
    void flow.enqueue(request, key('expire'));
    void flow.enqueue(request, key('full'));
    expect(flow.tryEnqueue(request, key('busy'))?.type).toBe('RejectedCapacity');
    expect(admission.ended).toEqual(['full dropped', 'busy dropped']);
    abort.abort();
    clock.advance(60_000);
    lease.report({ completionTokens: 7 });
    lease.release();
    expect(admission.ended).toEqual(['full dropped', 'busy dropped', 'abort dropped', 'expire dropped', 'run 7']);
    expect(admission.admitted).toBe(admission.ended.length);
  });

  it('hears of a request that tryEnqueue did not let wait', () => {
    const admission = counting();
    const { flow } = makeFlow({ admission });
    runNow(flow);
    expect(flow.tryEnqueue(request, key('later'))).toBeUndefined();
    expect(admission.ended).toEqual(['later dropped']);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
    ['answers nonsense', () => 'perhaps' as 'admit'],
  ])('that %s lets the request in and is reported', async (_, admit) => {
    const { flow } = makeFlow({ admission: { type: 'broken', admit } });
    expect((await flow.enqueue(request, key())).type).toBe('Dispatched');
    expect(flow.stats().pluginErrors).toBe(1);
  });

  it('is replaced by reconfigure; the old one still hears of what it admitted', async () => {
    const before = counting();
    const after = counting();
    const { flow } = makeFlow({ admission: before });
    const lease = leaseOf(await flow.enqueue(request, key('old')));
    flow.reconfigure({ admission: after });
    lease.release();
    expect([before.ended, after.ended]).toEqual([['old 0'], []]);
  });
});

describe("mode 'admission'", () => {
  it('lets everything that is admitted go at once, however full the pool is', async () => {
    const { flow } = makeFlow({ mode: 'admission', admission: counting() });
    const outcomes = await Promise.all(
      ['a', 'b', 'c', 'no'].map((fairnessId) => flow.enqueue(request, key(fairnessId))),
    );
    expect(outcomes.map(({ type }) => type)).toEqual(['Dispatched', 'Dispatched', 'Dispatched', 'RejectedCapacity']);
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 3 });
  });

  it('has nowhere to send a request while the pool is empty', async () => {
    const { flow } = makeFlow({ mode: 'admission', pool: new EndpointPool() });
    expect(dropOf(await flow.enqueue(request, key())).type).toBe('RejectedNoEndpoints');
    await turns();
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 0 });
  });
});
