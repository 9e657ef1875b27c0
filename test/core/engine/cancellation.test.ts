import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { FlowController, type FlowFairnessPolicy, roundRobin } from '../../../src/index.js';
import {
  countedAbort,
  dial,
  dispatchOrder,
  dropOf,
  key,
  leaseOf,
  makeFlow,
  record,
  request,
  runNow,
  turns,
} from '../../support/flow.js';

describe('a signal that aborts while its request waits', () => {
  it('drops the request in the same turn', async () => {
    const { flow, clock } = makeFlow();
    const { controller, signal, live } = countedAbort();
    runNow(flow);
    const waiting = flow.enqueue({ ...request, signal }, key());
    expect(live()).toBe(1);
    clock.advance(70);
    controller.abort();
    expect(flow.stats()).toMatchObject({ waiting: 0, waitingBytes: 0, outcomes: { EvictedContextCancelled: 1 } });
    expect([live(), clock.pendingTimers]).toEqual([0, 0]);
    expect(dropOf(await waiting)).toMatchObject({ type: 'EvictedContextCancelled', reason: 'cancelled', queuedMs: 70 });
  });

  it('frees the request’s place in the limits at once', () => {
    const { flow } = makeFlow({ limits: { maxRequests: 1, maxBytes: 10 } });
    const { controller, signal } = countedAbort();
    runNow(flow);
    void flow.enqueue({ ...request, signal }, key());
    controller.abort();
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
    void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ waiting: 1, rejected: 0 });
  });

  it.each([
    ['one queue', undefined],
    ['a queue for each flow', roundRobin()],
  ])('leaves the order of the others alone, with %s', (_, fairness) => {
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness }] });
    const order = dispatchOrder(flow);
    const aborts = [countedAbort(), countedAbort(), countedAbort()];
    const held = runNow(flow);
    order.length = 0;
    flow.on('dispatched', ({ lease }) => queueMicrotask(() => lease.release()));
    for (const [index, name] of ['a', 'b', 'c', 'd', 'e'].entries()) {
      const abort = aborts[index / 2];
      void flow.enqueue(abort === undefined ? request : { ...request, signal: abort.signal }, key(name));
    }
    aborts[1]?.controller.abort();
    aborts[0]?.controller.abort();
    aborts[2]?.controller.abort();
    held.release();
    return flow.close({ drainMs: 1000 }).then(() => expect(order).toEqual(['b', 'd']));
  });

  it('has no say any more once the request was dispatched', async () => {
    const { flow } = makeFlow();
    const { controller, signal, live } = countedAbort();
    const held = runNow(flow);
    const waiting = flow.enqueue({ ...request, signal }, key());
    held.release();
    expect(live()).toBe(0);
    controller.abort();
    const lease = leaseOf(await waiting);
    expect([lease.isReleased, lease.signal.aborted]).toEqual([false, false]);
    expect(flow.stats()).toMatchObject({ dispatched: 2, evicted: 0, inFlight: 1 });
  });

  it('drops what one controller holds when two controllers share it', () => {
    const { flow: first } = makeFlow();
    const { flow: second } = makeFlow();
    const { controller, signal, live } = countedAbort();
    for (const flow of [first, second]) {
      runNow(flow);
      void flow.enqueue({ ...request, signal }, key());
    }
    expect(live()).toBe(2);
    controller.abort();
    expect([first.stats().waiting, second.stats().waiting, live()]).toEqual([0, 0, 0]);
  });
});

describe('a signal that has aborted before', () => {
  it('rejects the request, even while the gate is open, and gets no listener', async () => {
    const { flow } = makeFlow();
    const { controller, signal, added } = countedAbort();
    controller.abort();
    expect(dropOf(await flow.enqueue({ ...request, signal }, key()))).toMatchObject({
      type: 'RejectedOther',
      reason: 'cancelled',
      queuedMs: 0,
    });
    expect(dropOf(flow.tryEnqueue({ ...request, signal }, key())).type).toBe('RejectedOther');
    expect([added(), flow.stats().dispatched]).toEqual([0, 0]);
  });

  it.each(['flowActivated', 'itemAdded'] as const)('is noticed when a policy’s %s aborted it', async (hook) => {
    const { controller, signal, live } = countedAbort();
    const fairness: FlowFairnessPolicy = {
      type: 'aborting',
      createSelector: (band) => ({ pick: () => band.firstActive, [hook]: () => controller.abort() }),
    };
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness }] });
    const held = runNow(flow);
    const waiting = flow.enqueue({ ...request, signal }, key());
    expect(flow.stats().waiting).toBe(0);
    held.release();
    expect(dropOf(await waiting).type).toBe('EvictedContextCancelled');
    expect(live()).toBe(0);
  });
});

describe('listeners', () => {
  it('are not put on the signal of a request that need not wait', async () => {
    const { flow } = makeFlow();
    const { signal, added } = countedAbort();
    leaseOf(await flow.enqueue({ ...request, signal }, key()));
    expect(flow.tryEnqueue({ ...request, signal }, key())).toBeUndefined();
    expect(added()).toBe(0);
  });

  it('number one for 100,000 requests that share a signal, and none when all are gone', async () => {
    const limits = { maxRequests: 200_000, maxBytes: 1e9 };
    const { flow } = makeFlow({ limits, bands: [{ priority: 0, limits, fairness: roundRobin() }] });
    const { controller, signal, added, live } = countedAbort();
    runNow(flow);
    let cancelled = 0;
    const count = 100_000;
    for (let i = 0; i < count; i++) {
      void flow.enqueue({ byteSize: 1, signal }, key(`f${i % 100}`)).then(({ type }) => {
        if (type === 'EvictedContextCancelled') cancelled++;
      });
    }
    expect([added(), live(), getEventListeners(signal, 'abort').length]).toEqual([1, 1, 1]);
    controller.abort();
    expect(flow.stats()).toMatchObject({ waiting: 0, waitingBytes: 0, evicted: count });
    expect([added(), live(), getEventListeners(signal, 'abort').length]).toEqual([1, 0, 0]);
    await Promise.resolve();
    expect(cancelled).toBe(count);
  });

  it('are one for all requests that share a signal, of which each is dropped when it aborts', () => {
    const { flow } = makeFlow();
    const { controller } = countedAbort();
    const { signal } = controller;
    runNow(flow);
    for (let i = 0; i < 4; i++) void flow.enqueue({ ...request, signal }, key());
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    controller.abort();
    expect([flow.stats().waiting, getEventListeners(signal, 'abort').length]).toEqual([0, 0]);
  });

  it('stay while one request of several that share a signal still waits', () => {
    const { flow, clock } = makeFlow();
    const { signal, live } = countedAbort();
    const held = runNow(flow);
    void flow.enqueue({ ...request, signal, ttlMs: 10 }, key());
    void flow.enqueue({ ...request, signal }, key());
    void flow.enqueue({ ...request, signal }, key());
    clock.advance(10);
    expect(live()).toBe(1);
    held.release();
    expect(live()).toBe(1);
    clock.advance(60_000);
    expect(live()).toBe(0);
  });

  it('come back when the signal is used again', async () => {
    const { flow } = makeFlow({ saturationDetector: dial(1, true) });
    const { controller, signal, added, live } = countedAbort();
    const own = countedAbort();
    void flow.enqueue({ ...request, signal: own.signal }, key());
    void flow.enqueue({ ...request, signal, ttlMs: 5 }, key());
    own.controller.abort();
    void flow.enqueue({ ...request, signal }, key());
    expect([added(), live()]).toEqual([1, 1]);
    controller.abort();
    expect(live()).toBe(0);
    expect(flow.stats().waiting).toBe(0);
  });

  it('are gone when the controller has closed', async () => {
    const { flow } = makeFlow();
    const sources = Array.from({ length: 20 }, countedAbort);
    runNow(flow);
    for (const { signal } of sources)
      for (let i = 0; i < 3; i++) void flow.enqueue({ ...request, signal }, key(`f${i}`));
    expect(sources.map(({ live }) => live())).toEqual(sources.map(() => 1));
    await flow.close();
    expect(sources.map(({ live }) => live())).toEqual(sources.map(() => 0));
  });
});

it('takes signals of other makes, which need only the members that it uses', async () => {
  const listeners = new Set<{ handleEvent(): void }>();
  const foreign = {
    aborted: false,
    addEventListener: (_: string, listener: { handleEvent(): void }) => listeners.add(listener),
    removeEventListener: (_: string, listener: { handleEvent(): void }) => listeners.delete(listener),
  };
  const { flow } = makeFlow();
  runNow(flow);
  const waiting = flow.enqueue({ ...request, signal: foreign as unknown as AbortSignal }, key());
  foreign.aborted = true;
  for (const listener of listeners) listener.handleEvent();
  expect(dropOf(await waiting).type).toBe('EvictedContextCancelled');
  expect(listeners.size).toBe(0);
  expect(flow).toBeInstanceOf(FlowController);
});

const failing = () => {
  throw new Error('broken signal');
};

it.each([
  ['cannot be listened to', { addEventListener: failing, removeEventListener: () => {} }],
  ['cannot be let go of', { addEventListener: () => {}, removeEventListener: failing }],
  [
    'answers later that it could not be listened to',
    { addEventListener: async () => failing(), removeEventListener: () => {} },
  ],
  [
    'answers later that it could not be let go of',
    { addEventListener: () => {}, removeEventListener: async () => failing() },
  ],
])('a signal that %s is reported once, and its request waits all the same', async (_, methods) => {
  const { flow } = makeFlow();
  const errors = record(flow, 'pluginError');
  const held = runNow(flow);
  const signal = { aborted: false, ...methods } as unknown as AbortSignal;
  const waiting = flow.enqueue({ ...request, signal }, key());
  expect(flow.stats().waiting).toBe(1);
  held.release();
  leaseOf(await waiting);
  await turns();
  expect(errors).toMatchObject([{ kind: 'signal', type: 'AbortSignal', error: { message: 'broken signal' } }]);
});

it('a signal that calls a listener it was asked to let go of drops nobody', async () => {
  let listener: { handleEvent(): void } | undefined;
  const signal = {
    aborted: false,
    addEventListener: (_: string, given: { handleEvent(): void }) => {
      listener = given;
    },
    removeEventListener: () => {},
  } as unknown as AbortSignal;
  const { flow } = makeFlow();
  const errors = record(flow, 'pluginError');
  const held = runNow(flow);
  const waiting = [flow.enqueue({ ...request, signal }, key()), flow.enqueue(request, key())];
  held.release();
  leaseOf(await waiting[0]);
  listener?.handleEvent();
  expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 1, evicted: 0 });
  expect(errors).toEqual([]);
});
