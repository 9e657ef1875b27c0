/** What becomes of a request that comes in, where several answers are near. */
import { describe, expect, it } from 'vitest';
import { EndpointPool, type FlowControllerOptions } from '../../../src/index.js';
import { dial, dropOf, key, leaseOf, makeFlow, request, runNow } from '../../support/flow.js';

/** A controller with an open gate and one server without room: requests wait for the server alone. */
function openGateFullServer(options: Partial<FlowControllerOptions> = {}) {
  const pool = new EndpointPool();
  pool.add('a');
  const roomless = { type: 'roomless', saturation: () => 0, filter: () => [] };
  return makeFlow({ pool, headroom: 'required', saturationDetector: roomless, ...options });
}

describe('a request that finds the gate open, and no server with room', () => {
  it('waits within the limits, and is rejected beyond them', async () => {
    const { flow } = openGateFullServer({ limits: { maxRequests: 2 } });
    for (let i = 0; i < 2; i++) void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ waiting: 2, inFlight: 0 });
    expect(dropOf(await flow.enqueue(request, key())).reason).toBe('global-max-requests');
  });
});

describe('a full queue', () => {
  /** One request of `a` runs and one waits for it, at the cap of its flow: the band has no place left. */
  function fullOfParked(limits: { maxRequests?: number; maxBytes?: number }) {
    const made = makeFlow({ saturationDetector: dial(0), bands: [{ priority: 0, limits, maxInFlightPerFlow: 1 }] });
    runNow(made.flow, { fairnessId: 'a' });
    void made.flow.enqueue(request, key('a'));
    return made.flow;
  }

  it.each([[{ maxRequests: 1 }], [{ maxBytes: 10 }]])('of %o lets pass who need not wait', async (limits) => {
    const flow = fullOfParked(limits);
    leaseOf(await flow.enqueue(request, key('b')));
    expect(flow.stats()).toMatchObject({ inFlight: 2, waiting: 1 });
    expect(dropOf(await flow.enqueue(request, key('a'))).type).toBe('RejectedCapacity');
  });

  it('lets nobody pass who is larger than the limit', async () => {
    const flow = fullOfParked({ maxBytes: 10 });
    expect(dropOf(await flow.enqueue({ byteSize: 11 }, key('b'))).reason).toBe('band-max-bytes');
  });

  it('lets nobody pass where the limit is no request at all', async () => {
    const { flow } = makeFlow({ limits: { maxRequests: 0 } });
    expect(dropOf(await flow.enqueue(request, key('b'))).reason).toBe('global-max-requests');
  });
});

describe('an admission policy that refuses', () => {
  it.each([
    ['overloaded', 'overloaded'],
    [undefined, 'refused'],
  ] as const)('for the cause %s gives the drop the reason %s', async (cause, reason) => {
    const { flow } = makeFlow({ admission: { type: 'no', admit: () => ({ reason: 'no', cause }) } });
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({ type: 'RejectedCapacity', reason, detail: 'no' });
  });
});

describe("mode 'admission' without an endpoint to be had", () => {
  it('is a want of endpoints while the pool has none that is well', async () => {
    const pool = new EndpointPool();
    pool.add('a', { state: 'ill' });
    const { flow } = makeFlow({ mode: 'admission', pool });
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({ type: 'RejectedNoEndpoints', reason: 'no-endpoints' });
  });

  it('is an overload where a server has no room for the request', async () => {
    const { flow } = openGateFullServer({ mode: 'admission' });
    expect(dropOf(await flow.enqueue(request, key()))).toMatchObject({ type: 'RejectedCapacity', reason: 'overloaded' });
  });
});

describe('the time that a request may wait', () => {
  it.each([
    ['its own, where that is shorter', 100, 50, 50],
    ['its TTL, where that is shorter', 50, 100, 50],
    ['its own, where its TTL is for ever', 0, 70, 70],
    ['its TTL, where it has none of its own', 60, undefined, 60],
  ])('is %s', async (_, ttlMs, maxWaitMs, waitsMs) => {
    const { flow, clock } = makeFlow();
    runNow(flow);
    const waiting = flow.enqueue({ ...request, ttlMs, maxWaitMs }, key());
    clock.advance(waitsMs - 1);
    expect(flow.stats().waiting).toBe(1);
    clock.advance(1);
    expect(dropOf(await waiting)).toMatchObject({ reason: 'ttl-expired', queuedMs: waitsMs });
  });
});

describe('a call that cannot be right', () => {
  const broken = {
    get byteSize(): number {
      throw new Error('unreadable');
    },
  };
  const wrong: [string, object][] = [
    ['of no bytes that can be counted', { byteSize: -1 }],
    ['of half a byte', { byteSize: 0.5 }],
    ['with tokens below 0', { byteSize: 1, tokens: -1 }],
    ['with half a token', { byteSize: 1, tokens: 0.5 }],
    ['with a target that is no span', { byteSize: 1, sloTtftMs: -1 }],
    ['received at no instant', { byteSize: 1, receivedAtMs: Number.NaN }],
    ['with a longest wait that is no span', { byteSize: 1, maxWaitMs: -1 }],
    ['with a TTL that is no span', { byteSize: 1, ttlMs: -1 }],
    ['with a signal that is none', { byteSize: 1, signal: 1 }],
    ['that cannot be read', broken],
  ];

  it.each(wrong)('%s is refused from inside an operation as well', async (_, given) => {
    const { flow } = makeFlow();
    const answers: Promise<unknown>[] = [];
    flow.on('dispatched', () => answers.push(flow.enqueue(given as typeof request, key()).catch(({ name }: Error) => name)));
    runNow(flow);
    expect(await Promise.all(answers)).toEqual(['FlowConfigError']);
    expect(flow.stats().enqueued).toBe(1);
  });

  it.each([
    ['an empty fairness ID', { fairnessId: '' }],
    ['no fairness ID', { fairnessId: undefined as unknown as string }],
    ['half a priority', { fairnessId: 'a', priority: 0.5 }],
  ])('with %s is refused from inside an operation as well', async (_, wrongKey) => {
    const { flow } = makeFlow();
    const answers: Promise<unknown>[] = [];
    flow.on('dispatched', () => answers.push(flow.enqueue(request, wrongKey).catch(({ name }: Error) => name)));
    runNow(flow);
    expect(await Promise.all(answers)).toEqual(['FlowConfigError']);
  });

  it('without a priority and tokens is right: both are 0', async () => {
    const { flow } = makeFlow({ saturationDetector: dial(0) });
    const answers: Promise<unknown>[] = [];
    const stop = flow.on('dispatched', () => {
      stop();
      answers.push(flow.enqueue({ byteSize: 0 }, { fairnessId: 'a' }));
    });
    runNow(flow);
    const [outcome] = await Promise.all(answers);
    expect(leaseOf(outcome as never)).toMatchObject({ priority: 0, tokens: 0 });
  });
});

describe('a signal that cannot be asked when its request is put back', () => {
  it('does not count as aborted', async () => {
    let isBroken = false;
    const signal = {
      get aborted(): boolean {
        if (isBroken) throw new Error('broken signal');
        return false;
      },
      addEventListener: () => {},
      removeEventListener: () => {},
    } as unknown as AbortSignal;
    const { flow } = makeFlow({ eviction: {} });
    const lease = leaseOf(await flow.enqueue({ ...request, signal }, key('batch', -10)));
    const premium = flow.enqueue(request, key('premium', 100));
    expect(lease.isEvicted).toBe(true);
    isBroken = true;
    const again = lease.requeue();
    leaseOf(await premium).release();
    expect(leaseOf(await again).fairnessId).toBe('batch');
  });
});
