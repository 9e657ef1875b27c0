import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  FlowConfigError,
  type FlowController,
  type FlowFairnessPolicy,
  inFlightEviction,
  type Lease,
  type Usage,
} from '../../../src/index.js';
import type { ManualClock } from '../../../src/testing/index.js';
import { key, leaseOf, makeFlow, record, request, runNow } from '../../support/flow.js';

function servers(...ids: string[]): EndpointPool {
  const pool = new EndpointPool();
  for (const id of ids) pool.add(id);
  return pool;
}

function seats(pool: EndpointPool): Record<string, number> {
  return Object.fromEntries(pool.endpoints.map(({ id, inFlightRequests }) => [id, inFlightRequests]));
}

function issueOf(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    if (error instanceof FlowConfigError) return error.issues[0];
    throw error;
  }
  return 'no error';
}

describe('a lease', () => {
  it('tells what was dispatched, where and when', async () => {
    const { flow, clock } = makeFlow({ pool: servers('e1') });
    clock.advance(500);
    const lease = leaseOf(await flow.enqueue({ ...request, tokens: 70 }, key('tenant', 3)));
    expect(lease).toMatchObject({
      fairnessId: 'tenant',
      priority: 3,
      dispatchedAtMs: 500,
      tokens: 70,
      isReleased: false,
    });
    expect(lease.endpoint?.id).toBe('e1');
    expect(lease.usage).toEqual({ promptTokens: 0, completionTokens: 0 });
  });

  it('tells one listener of its end, once, with the reason that its signal has', async () => {
    const lease = runNow(makeFlow().flow);
    const heard: unknown[] = [];
    lease.onAbort(() => heard.push('replaced'));
    lease.onAbort((reason) => heard.push(reason));
    expect(heard).toEqual([]);
    lease.abort();
    lease.abort('again');
    await Promise.resolve();
    expect(heard).toEqual([lease.signal.reason]);
    expect(lease.signal.reason).toMatchObject({ name: 'AbortError' });
  });

  it('tells a listener that comes after its end as well', async () => {
    const lease = runNow(makeFlow().flow);
    lease.abort('late');
    const heard: unknown[] = [];
    lease.onAbort((reason) => heard.push(reason));
    await Promise.resolve();
    expect(heard).toEqual(['late']);
  });

  it('has no endpoint without a pool', () => {
    expect(runNow(makeFlow().flow).endpoint).toBeUndefined();
  });

  it('gives its seat back once, however often it is released', () => {
    const { flow } = makeFlow({ saturationDetector: concurrencyDetector({ maxConcurrency: 2 }) });
    const released = record(flow, 'released');
    const lease = runNow(flow);
    runNow(flow);
    lease.release();
    lease.release();
    lease[Symbol.dispose]();
    expect(lease.isReleased).toBe(true);
    expect(flow.stats()).toMatchObject({ inFlight: 1, released: 1 });
    expect(released).toHaveLength(1);
    runNow(flow);
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
  });

  it('gives its seat back at the end of a block that uses it', () => {
    const { flow } = makeFlow();
    const lease = runNow(flow);
    lease[Symbol.dispose]();
    expect([lease.isReleased, flow.stats().inFlight]).toEqual([true, 0]);
  });

  it('lets the next request go in the same turn as it is released', () => {
    const { flow } = makeFlow();
    const lease = runNow(flow);
    void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ waiting: 1, isGateClosed: true });
    lease.release();
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 1, isGateClosed: false });
  });

  it('books its tokens as long as it is held', () => {
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ concurrencyMode: 'tokens', maxTokenConcurrency: 100 }),
    });
    const first = leaseOf(flow.tryEnqueue({ ...request, tokens: 60 }, key()));
    leaseOf(flow.tryEnqueue({ ...request, tokens: 60 }, key()));
    expect(flow.stats()).toMatchObject({ inFlight: 2, inFlightTokens: 120 });
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
    first.release();
    expect(flow.stats().inFlightTokens).toBe(60);
    expect(flow.tryEnqueue(request, key())?.type).toBe('Dispatched');
  });
});

describe('report', () => {
  it('replaces the figures that are given and keeps the others', () => {
    const { flow } = makeFlow();
    const released = record(flow, 'released');
    const lease = runNow(flow);
    lease.report({ promptTokens: 100 });
    lease.report({ completionTokens: 5 });
    lease.report({ completionTokens: 9 });
    lease.report({});
    expect(lease.usage).toEqual({ promptTokens: 100, completionTokens: 9 });
    lease.release();
    expect(released[0]?.usage).toEqual({ promptTokens: 100, completionTokens: 9 });
  });

  it.each([
    [{ promptTokens: -1 }, 'promptTokens'],
    [{ completionTokens: Number.NaN }, 'completionTokens'],
    [{ promptTokens: 5, completionTokens: Number.POSITIVE_INFINITY }, 'completionTokens'],
  ])('refuses %o, and keeps the figures it had', (usage, path) => {
    const lease = runNow(makeFlow().flow);
    lease.report({ promptTokens: 1, completionTokens: 2 });
    expect(issueOf(() => lease.report(usage))).toMatchObject({ path, expected: 'a number from 0 up' });
    expect(lease.usage).toEqual({ promptTokens: 1, completionTokens: 2 });
  });

  it('keeps the cached part of the prompt once it was told, and checks it as the others', () => {
    const lease = runNow(makeFlow().flow);
    lease.report({ promptTokens: 100 });
    expect(lease.usage).toStrictEqual({ promptTokens: 100, completionTokens: 0 });
    lease.report({ cachedPromptTokens: 64 });
    lease.report({ completionTokens: 5 });
    expect(lease.usage).toStrictEqual({ promptTokens: 100, completionTokens: 5, cachedPromptTokens: 64 });
    expect(() => lease.report({ cachedPromptTokens: -1 })).toThrow(
      'lease.report: cachedPromptTokens: expected a number from 0 up; got -1',
    );
  });

  it('tells the fairness policy what came since the last one, and all of it', () => {
    const heard: [increment: Usage, total: Usage][] = [];
    const fairness: FlowFairnessPolicy = {
      type: 'hears',
      createSelector: () => ({
        pick: () => undefined,
        consumed: (_flow, increment, _nowMs, _item, total) => void heard.push([increment, total]),
      }),
    };
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness }] });
    const lease = runNow(flow);
    lease.report({ promptTokens: 100, completionTokens: 5 });
    lease.report({ completionTokens: 25 });
    lease.report({ promptTokens: 90 });
    expect(heard).toEqual([
      [
        { promptTokens: 100, completionTokens: 5 },
        { promptTokens: 100, completionTokens: 5 },
      ],
      [
        { promptTokens: 0, completionTokens: 20 },
        { promptTokens: 100, completionTokens: 25 },
      ],
      [
        { promptTokens: -10, completionTokens: 0 },
        { promptTokens: 90, completionTokens: 25 },
      ],
    ]);
  });

  it('comes too late after the release', () => {
    const lease = runNow(makeFlow().flow);
    lease.release();
    lease.report({ promptTokens: 100 });
    expect(lease.usage).toEqual({ promptTokens: 0, completionTokens: 0 });
  });
});

describe('the first token of a request', () => {
  async function heardAfter(act: (lease: Lease, clock: ManualClock) => void): Promise<number[]> {
    const heard: number[] = [];
    const ordering = {
      type: 'hears',
      compare: () => 0,
      firstToken: (_: unknown, afterMs: number) => void heard.push(afterMs),
    };
    const { flow, clock } = makeFlow({ bands: [{ priority: 0, ordering }] });
    clock.advance(100);
    const lease = runNow(flow);
    clock.advance(30);
    act(lease, clock);
    lease.release();
    return heard;
  }

  it('is told to the ordering policy when it is reported', async () => {
    expect(await heardAfter((lease) => lease.report({ completionTokens: 1 }))).toEqual([30]);
  });

  it('is told once, however often tokens are reported', async () => {
    const act = (lease: Lease, clock: ManualClock): void => {
      lease.report({ promptTokens: 10 });
      clock.advance(10);
      lease.report({ completionTokens: 1 });
      clock.advance(10);
      lease.report({ completionTokens: 2 });
    };
    expect(await heardAfter(act)).toEqual([40]);
  });

  it('is taken for the end of a request that ended without a report', async () => {
    expect(await heardAfter(() => {})).toEqual([30]);
  });

  it('has not come of a request that was called off, nor of one that reached no server', async () => {
    expect(await heardAfter((lease) => lease.abort())).toEqual([]);
    expect(await heardAfter((lease) => lease.unsent())).toEqual([]);
  });

  it('has not come of a request that was put back', async () => {
    const heard: number[] = [];
    const ordering = {
      type: 'hears',
      compare: () => 0,
      firstToken: (_: unknown, afterMs: number) => void heard.push(afterMs),
    };
    const { flow } = makeFlow({ eviction: inFlightEviction(), bands: [{ priority: -1, ordering }] });
    const lease = runNow(flow, { priority: -1 });
    void flow.enqueue(request, key('premium', 1));
    expect(lease.isEvicted).toBe(true);
    void lease.requeue();
    expect(heard).toEqual([]);
  });

  it('is told to nobody where the ordering policy does not listen', () => {
    const { flow } = makeFlow();
    const errors = record(flow, 'pluginError');
    runNow(flow).release();
    expect(errors).toEqual([]);
  });
});

describe('abort', () => {
  it('aborts the lease’s signal with its reason, and keeps the seat', () => {
    const { flow } = makeFlow();
    const lease = runNow(flow);
    const { signal } = lease;
    const reason = new Error('make room');
    lease.abort(reason);
    expect([signal.aborted, signal.reason, lease.isReleased, flow.stats().inFlight]).toEqual([true, reason, false, 1]);
  });

  it('is seen by who asks for the signal afterwards', () => {
    const lease = runNow(makeFlow().flow);
    lease.abort('gone');
    expect([lease.signal.aborted, lease.signal.reason]).toEqual([true, 'gone']);
    expect(lease.signal).toBe(lease.signal);
  });

  it('is independent of the request’s own signal', async () => {
    const { flow } = makeFlow();
    const own = new AbortController();
    const lease = leaseOf(await flow.enqueue({ ...request, signal: own.signal }, key()));
    own.abort();
    expect(lease.signal.aborted).toBe(false);
  });

  it('may release the lease from its listener', () => {
    const { flow } = makeFlow();
    const lease = runNow(flow);
    void flow.enqueue(request, key());
    lease.signal.addEventListener('abort', () => lease.release());
    lease.abort();
    expect(flow.stats()).toMatchObject({ inFlight: 1, waiting: 0, released: 1 });
  });
});

describe('bind', () => {
  function bound(): { flow: FlowController; pool: EndpointPool; lease: Lease } {
    const pool = servers('a', 'b');
    const { flow } = makeFlow({ pool });
    const lease = runNow(flow);
    expect(seats(pool)).toEqual({ a: 1, b: 0 });
    return { flow, pool, lease };
  }

  it.each([
    ['a name', (_pool: EndpointPool) => 'b' as const],
    ['a member', (pool: EndpointPool) => pool.get('b')!],
  ])('moves the seat to the endpoint given by %s', (_, target) => {
    const { flow, pool, lease } = bound();
    lease.bind(target(pool));
    expect(lease.endpoint?.id).toBe('b');
    expect(seats(pool)).toEqual({ a: 0, b: 1 });
    expect([pool.inFlightRequests, flow.stats().inFlight]).toEqual([1, 1]);
    lease.release();
    expect(seats(pool)).toEqual({ a: 0, b: 0 });
    expect(pool.inFlightRequests).toBe(0);
  });

  it('to where it is changes nothing', () => {
    const { pool, lease } = bound();
    lease.bind('a');
    expect(seats(pool)).toEqual({ a: 1, b: 0 });
    expect(pool.get('a')?.dispatchedRequests).toBe(1);
  });

  it('to a member’s namesake that was removed is rejected, and the seat stays', () => {
    const { pool, lease } = bound();
    const former = pool.get('b')!;
    pool.remove('b');
    pool.add('b');
    expect(issueOf(() => lease.bind(former))).toMatchObject({ path: 'endpoint', expected: 'an endpoint of the pool' });
    expect(lease.endpoint?.id).toBe('a');
    expect(pool.inFlightRequests).toBe(1);
  });

  it('to a new endpoint of the same name moves the seat over', () => {
    const { pool, lease } = bound();
    pool.remove('a');
    expect(pool.inFlightRequests).toBe(0);
    pool.add('a');
    lease.bind('a');
    expect(pool.inFlightRequests).toBe(1);
    lease.release();
    expect(seats(pool)).toEqual({ b: 0, a: 0 });
  });

  it.each([
    ['a name that is not in the pool', 'c'],
    ['an object that is no member', { id: 'b' }],
    ['a number', 3],
    ['null', null],
    ['nothing', undefined],
  ])('refuses %s', (_, target) => {
    const { lease } = bound();
    expect(() => lease.bind(target as never)).toThrow('lease.bind: endpoint: expected an endpoint of the pool; got ');
  });

  it('rejects a lease that was released', () => {
    const { pool, lease } = bound();
    lease.release();
    expect(() => lease.bind('b')).toThrow('lease.bind: expected a lease that is held; got one that was released');
    expect(seats(pool)).toEqual({ a: 0, b: 0 });
  });

  it('wakes requests that the place left behind has room for', () => {
    const pool = servers('a', 'b');
    const { flow } = makeFlow({
      pool,
      // Full as soon as any endpoint is.
      saturationDetector: ({ endpoints }) => Math.max(...endpoints.map(({ inFlightRequests }) => inFlightRequests)) / 2,
    });
    const [first] = [runNow(flow), runNow(flow), runNow(flow)];
    void flow.enqueue(request, key());
    expect(seats(pool)).toEqual({ a: 2, b: 1 });
    pool.add('c');
    expect(flow.stats().waiting).toBe(1);
    first?.bind('c');
    expect(seats(pool)).toMatchObject({ c: expect.any(Number) });
    expect(flow.stats()).toMatchObject({ waiting: 0, inFlight: 4 });
  });

  it('leaves a request that did not move to lag compensation from its dispatch on', () => {
    const pool = servers('a');
    const { flow, clock } = makeFlow({ pool });
    pool.report('a', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
    clock.advance(100);
    runNow(flow);
    clock.advance(10);
    pool.report('a', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0, sampledAtMs: 99 });
    expect(pool.get('a')?.unsampledRequests).toBe(1);
    pool.report('a', { waitingQueueSize: 1, runningRequests: 0, kvCacheUsage: 0, sampledAtMs: 100 });
    expect(pool.get('a')?.unsampledRequests).toBe(0);
  });

  it('is counted by lag compensation from the moment of the move', () => {
    const pool = servers('a', 'b');
    const { flow, clock } = makeFlow({ pool });
    pool.report('b', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0 });
    const lease = runNow(flow);
    clock.advance(100);
    lease.bind('b');
    clock.advance(10);
    // A sample of before the move cannot include the request, however long ago it was dispatched.
    pool.report('b', { waitingQueueSize: 0, runningRequests: 0, kvCacheUsage: 0, sampledAtMs: 50 });
    expect(pool.get('b')?.unsampledRequests).toBe(1);
    pool.report('b', { waitingQueueSize: 1, runningRequests: 0, kvCacheUsage: 0, sampledAtMs: 100 });
    expect(pool.get('b')?.unsampledRequests).toBe(0);
  });
});
