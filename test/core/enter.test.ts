import { describe, expect, it, vi } from 'vitest';
import { explainWait, FlowConfigError, shadow, tokenBucket } from '../../src/index.js';
import { dropOf, key, leaseOf, makeFlow, request, runNow } from '../support/flow.js';

describe('enter', () => {
  it('answers at once when it can, and then asks for no other request', () => {
    const { flow } = makeFlow({ limits: { maxRequests: 1 } });
    const waiting = vi.fn(() => request);
    leaseOf(flow.enter(request, key(), waiting) as never);
    void flow.enter(request, key());
    expect(dropOf(flow.enter(request, key(), waiting) as never).reason).toBe('global-max-requests');
    expect(waiting).not.toHaveBeenCalled();
  });

  it('promises an outcome to a request that waits, which is one arrival and pays once', async () => {
    const bucket = tokenBucket({ capacity: 10, refillPerSecond: 1e-9 });
    const { flow } = makeFlow({ admission: bucket });
    const first = runNow(flow);
    const entered = flow.enter({ byteSize: 1, tokens: 4 }, key());
    expect([entered instanceof Promise, bucket.tokens]).toEqual([true, 6]);
    expect(flow.figures().bands).toMatchObject([{ arrivedPerSecond: 2 }]);
    first.release();
    leaseOf(await entered);
  });

  it('lets a request wait as `waiting` makes it, until the signal of that aborts', async () => {
    const { flow } = makeFlow();
    runNow(flow);
    const abort = new AbortController();
    const made = { byteSize: 99, signal: abort.signal };
    const entered = flow.enter({ byteSize: 1 }, key(), () => made);
    expect([flow.stats().waitingBytes, explainWait(flow, made)?.ahead]).toEqual([1, 0]);
    abort.abort();
    expect(dropOf(await entered).type).toBe('EvictedContextCancelled');
  });

  it('is decided after the operation that calls it', async () => {
    const { flow } = makeFlow();
    const entered: unknown[] = [];
    flow.on('released', () => entered.push(flow.enter(request, key('inside'))));
    runNow(flow).release();
    expect(leaseOf(await (entered[0] as Promise<never>)).fairnessId).toBe('inside');
  });

  it('answers at once in mode shadow', () => {
    const { flow } = makeFlow({ mode: shadow() });
    for (let i = 0; i < 2; i++) leaseOf(flow.enter(request, key()) as never);
  });

  it('rejects for a call that cannot be right', async () => {
    for (const mode of ['queue', shadow()] as const)
      await expect(makeFlow({ mode }).flow.enter({ byteSize: -1 }, key())).rejects.toThrow(FlowConfigError);
  });
});
