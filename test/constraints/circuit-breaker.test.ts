import { describe, expect, it } from 'vitest';
import type { CircuitBreaker } from '../../src/constraints/circuit-breaker.js';
import {
  circuitBreaker,
  EndpointPool,
  explainWait,
  FlowConfigError,
  FlowController,
  type Lease,
} from '../../src/index.js';
import { audit, ManualClock } from '../../src/testing/index.js';
import { fakeEndpoint } from '../support/fake-pool.js';
import { fakeSeat } from '../support/fake-seat.js';
import { key, leaseOf, request, turns } from '../support/flow.js';

type Options = Parameters<typeof circuitBreaker>[0];

function setUp(options: Options, endpoints = ['a']) {
  const clock = new ManualClock();
  const pool = new EndpointPool();
  for (const id of endpoints) pool.add(id);
  const breaker = circuitBreaker(options);
  const flow = new FlowController({ clock, pool, maxConcurrency: 8, constraints: [breaker] });
  const [first] = pool.endpoints;
  const state = () => breaker.stateOf(first!, clock.now());
  const dispatched: Lease[] = [];
  flow.on('dispatched', ({ lease }) => dispatched.push(lease));
  /** One request that is answered after so long. */
  const call = (status: number, tookMs = 0): string | undefined => {
    const lease = leaseOf(flow.tryEnqueue(request, key()));
    clock.advance(tookMs);
    lease.answered({ status, headers: {} });
    lease.release();
    return lease.endpoint?.id;
  };
  return { clock, pool, flow, breaker, state, call, dispatched };
}

describe('the circuit of an endpoint', () => {
  it('opens at the share of failures, and not before enough calls say so', () => {
    const { call, state } = setUp({ minCalls: 4, failureRatio: 0.5 });
    for (const status of [500, 503, 200]) call(status);
    expect(state()).toBe('closed');
    call(200);
    expect(state()).toBe('open');
  });

  it('counts neither refusals because of load nor what clients did wrong as failures', () => {
    const { call, state } = setUp({ minCalls: 2 });
    for (const status of [429, 529, 400, 404, 429, 529]) call(status);
    expect(state()).toBe('closed');
  });

  it('forgets what is older than the window', () => {
    const { call, clock, state } = setUp({ minCalls: 3, window: '10s' });
    call(500);
    call(500);
    clock.advance(11_000);
    call(500);
    expect(state()).toBe('closed');
  });

  it('lets nothing through while it is open, and one request at a time at the very instant at which it is tried', async () => {
    const { call, clock, flow, state, dispatched } = setUp({ minCalls: 1, openFor: '5s' });
    call(500);
    const before = dispatched.length;
    for (let i = 0; i < 3; i++) void flow.enqueue(request, key());
    clock.advance(4_999);
    await turns();
    expect([state(), dispatched.length - before]).toEqual(['open', 0]);
    clock.advance(1);
    await turns();
    expect([state(), dispatched.length - before]).toEqual(['half-open', 1]);
    expect(audit(flow).violations).toEqual([]);
    dispatched[before]?.answered({ status: 200, headers: {} });
    dispatched[before]?.release();
    await turns();
    expect([state(), dispatched.length - before]).toEqual(['closed', 3]);
    expect(audit(flow).violations).toEqual([]);
  });

  it('stays open twice as long after each probe that fails, up to a bound, and is forgiven by one that goes well', () => {
    const { call, clock, state } = setUp({ minCalls: 1, openFor: '5s', maxOpenFor: '15s' });
    call(500);
    for (const openMs of [5_000, 10_000, 15_000, 15_000]) {
      clock.advance(openMs - 1);
      expect(state()).toBe('open');
      clock.advance(1);
      expect(state()).toBe('half-open');
      call(502);
    }
    clock.advance(15_000);
    call(200);
    expect(state()).toBe('closed');
    call(500);
    clock.advance(5_000);
    expect(state()).toBe('half-open');
  });

  it('opens for slow answers, and for requests that end without any', () => {
    const slow = setUp({ minCalls: 2, slowCall: '1s' });
    slow.call(200, 1_001);
    slow.call(200, 1_000);
    expect(slow.state()).toBe('open');
    const silent = setUp({ minCalls: 1, slowCall: '1s' });
    const lease = leaseOf(silent.flow.tryEnqueue(request, key()));
    silent.clock.advance(2_000);
    lease.release();
    expect(silent.state()).toBe('open');
    const quick = setUp({ minCalls: 1, slowCall: '1s' });
    leaseOf(quick.flow.tryEnqueue(request, key())).release();
    expect(quick.state()).toBe('closed');
  });

  it('hears from the host of failures that no answer tells of', () => {
    const { breaker, clock, pool, state } = setUp({ minCalls: 2 });
    for (let i = 0; i < 2; i++) breaker.failed(pool.endpoints[0]!, clock.now());
    expect(state()).toBe('open');
  });

  it('lets those that wait go when the answer to its probe has begun, and not only when it has ended', async () => {
    const { call, clock, flow, dispatched } = setUp({ minCalls: 1, openFor: 100 });
    call(500);
    const before = dispatched.length;
    for (let i = 0; i < 3; i++) void flow.enqueue(request, key());
    clock.advance(100);
    expect(dispatched.length - before).toBe(1);
    dispatched.at(-1)?.answered({ status: 200, headers: {} });
    expect(dispatched.length - before).toBe(3);
  });

  it('closes again only when as many probes went well as may try it', () => {
    const { call, clock, flow, state } = setUp({ minCalls: 1, probes: 2, openFor: 100 });
    call(500);
    clock.advance(100);
    const probes = [1, 2].map(() => leaseOf(flow.tryEnqueue(request, key())));
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
    for (const probe of probes) {
      expect(state()).toBe('half-open');
      probe.answered({ status: 200, headers: {} });
      probe.release();
    }
    expect(state()).toBe('closed');
  });
});

it('the other endpoints take what an open one would have got', () => {
  const { call, flow } = setUp({ minCalls: 1 }, ['a', 'b']);
  const first = call(500);
  const others = Array.from({ length: 5 }, () => call(200));
  expect(new Set(others)).toEqual(new Set([first === 'a' ? 'b' : 'a']));
  expect(flow.stats().waiting).toBe(0);
});

it('a request that waits for a circuit says so', () => {
  const { call, flow } = setUp({ minCalls: 1 });
  call(500);
  void flow.enqueue(request, key());
  expect(explainWait(flow, 1)?.text).toContain('a server whose circuit is closed');
});

describe('the detector of circuits', () => {
  const [a, b] = [fakeEndpoint('a'), fakeEndpoint('b')];
  const answer = (status: number) => ({ status, headers: {} });

  /** One request from `atMs` on that is answered `tookMs` later and released another `tookMs` later. */
  function play(breaker: CircuitBreaker, status: number, atMs: number, tookMs = 0, endpoint = a): void {
    const seat = fakeSeat();
    breaker.dispatched?.(endpoint, atMs, seat);
    breaker.answered?.(endpoint, atMs + tookMs, seat, answer(status));
    breaker.released?.(endpoint, atMs + 2 * tookMs, seat);
  }

  it('knows an endpoint that nothing was sent to as closed', () => {
    const breaker = circuitBreaker();
    expect(breaker.stateOf(a, 0)).toBe('closed');
    expect(breaker.withRoomFor?.([a, b], fakeSeat().item, 0)).toEqual([a, b]);
  });

  it('counts each call once, though it is slow to answer and slow to end', () => {
    const breaker = circuitBreaker({ minCalls: 2, slowCall: 100, slowRatio: 1 });
    play(breaker, 200, 0, 150);
    expect(breaker.stateOf(a, 300)).toBe('closed');
    play(breaker, 200, 300, 150);
    expect(breaker.stateOf(a, 600)).toBe('open');
  });

  it('opens at the share of slow calls alone, and forgets them as it forgets failures', () => {
    const breaker = circuitBreaker({ minCalls: 4, slowCall: 100, slowRatio: 0.75, failureRatio: 1, window: 1000 });
    for (const tookMs of [101, 101, 0]) play(breaker, 200, 0, tookMs);
    play(breaker, 200, 150, 0);
    expect(breaker.stateOf(a, 200)).toBe('closed');
    for (let i = 0; i < 4; i++) play(breaker, 200, 200, 101);
    expect(breaker.stateOf(a, 310)).toBe('open');
  });

  it('adds up the calls of its whole window, and forgets each a tenth of it late at most', () => {
    const breaker = (): CircuitBreaker => circuitBreaker({ minCalls: 3, window: 1000 });
    const [within, beyond] = [breaker(), breaker()];
    for (const atMs of [0, 450, 999]) play(within, 500, atMs);
    expect(within.stateOf(a, 999)).toBe('open');
    for (const atMs of [0, 450, 1000]) play(beyond, 500, atMs);
    expect(beyond.stateOf(a, 1000)).toBe('closed');
    // The window holds 450 and 1000 now, and the third makes it open.
    play(beyond, 500, 1399);
    expect(beyond.stateOf(a, 1399)).toBe('open');
  });

  it('begins to count anew when it closes again', () => {
    const breaker = circuitBreaker({ minCalls: 2, openFor: 100, window: 10_000 });
    for (let i = 0; i < 2; i++) play(breaker, 500, 0);
    play(breaker, 200, 100);
    expect(breaker.stateOf(a, 100)).toBe('closed');
    play(breaker, 500, 100);
    expect(breaker.stateOf(a, 100)).toBe('closed');
  });

  it('takes no notice of a request that nothing was sent of, however long it was held', () => {
    const breaker = circuitBreaker({ minCalls: 1, slowCall: 100 });
    const seat = fakeSeat({}, { isUnsent: true });
    breaker.dispatched?.(a, 0, seat);
    breaker.released?.(a, 500, seat);
    expect(breaker.stateOf(a, 500)).toBe('closed');
  });

  it('takes no notice of what a seat is told of that it did not see go', () => {
    const breaker = circuitBreaker({ minCalls: 1, slowCall: 100 });
    breaker.answered?.(a, 0, fakeSeat(), answer(500));
    breaker.released?.(a, 0, fakeSeat());
    expect(breaker.stateOf(a, 0)).toBe('closed');
  });

  it('is not closed, nor opened anew, by requests that went before it opened', () => {
    const breaker = circuitBreaker({ minCalls: 1, openFor: 100 });
    const [good, bad] = [fakeSeat(), fakeSeat()];
    for (const seat of [good, bad]) breaker.dispatched?.(a, 0, seat);
    play(breaker, 500, 0);
    breaker.answered?.(a, 50, bad, answer(500));
    expect(breaker.stateOf(a, 100)).toBe('half-open');
    breaker.answered?.(a, 120, good, answer(200));
    expect(breaker.stateOf(a, 120)).toBe('half-open');
  });

  it('needs all its probes anew after one of them failed', () => {
    const breaker = circuitBreaker({ minCalls: 1, openFor: 100, probes: 2 });
    play(breaker, 500, 0);
    play(breaker, 200, 100);
    play(breaker, 500, 100);
    expect([breaker.stateOf(a, 299), breaker.stateOf(a, 300)]).toEqual(['open', 'half-open']);
    play(breaker, 200, 300);
    expect(breaker.stateOf(a, 300)).toBe('half-open');
    play(breaker, 200, 300);
    expect(breaker.stateOf(a, 300)).toBe('closed');
  });

  it('is opened again by a probe that ends without an answer after too long, or that the host says has failed', () => {
    const slow = circuitBreaker({ minCalls: 1, openFor: 100, slowCall: 50 });
    play(slow, 500, 0);
    const probe = fakeSeat();
    slow.dispatched?.(a, 100, probe);
    slow.released?.(a, 151, probe);
    expect([slow.stateOf(a, 350), slow.stateOf(a, 351)]).toEqual(['open', 'half-open']);
    const refused = circuitBreaker({ minCalls: 1, openFor: 100 });
    play(refused, 500, 0);
    refused.failed(a, 100);
    expect(refused.stateOf(a, 100)).toBe('half-open');
    refused.dispatched?.(a, 100, fakeSeat());
    refused.failed(a, 110);
    expect([refused.stateOf(a, 309), refused.stateOf(a, 310)]).toEqual(['open', 'half-open']);
  });

  it('frees the place of a probe that ends, whatever came of it', () => {
    const breaker = circuitBreaker({ minCalls: 1, openFor: 100 });
    play(breaker, 500, 0);
    const probe = fakeSeat();
    breaker.dispatched?.(a, 100, probe);
    expect(breaker.withRoomFor?.([a, b], fakeSeat().item, 100)).toEqual([b]);
    breaker.released?.(a, 120, probe);
    expect(breaker.withRoomFor?.([a], fakeSeat().item, 120)).toEqual([a]);
  });

  it('says when the first of the endpoints is tried again, and nothing while a probe runs', () => {
    const breaker = circuitBreaker({ minCalls: 1, openFor: 100 });
    play(breaker, 500, 0);
    play(breaker, 500, 40, 0, b);
    const wait = (nowMs: number) => breaker.waitOf?.([a, b], fakeSeat().item, nowMs);
    expect(wait(50)).toEqual({ atMs: 100, notBeforeMs: 50, missing: 'a server whose circuit is closed' });
    expect([wait(100)?.atMs, wait(140)?.atMs]).toEqual([140, Number.POSITIVE_INFINITY]);
  });
});

it('lists every wrong option', () => {
  const wrong = () => circuitBreaker({ window: 0, failureRatio: 2, probes: 0 });
  expect(wrong).toThrow(FlowConfigError);
  for (const path of ['window', 'failureRatio', 'probes']) expect(wrong).toThrow(`${path}: expected`);
});
