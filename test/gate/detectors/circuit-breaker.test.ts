import { describe, expect, it } from 'vitest';
import {
  circuitBreaker,
  concurrencyDetector,
  EndpointPool,
  FlowConfigError,
  FlowController,
  type Lease,
  maxOf,
} from '../../../src/index.js';
import { audit, ManualClock } from '../../../src/testing/index.js';
import { key, leaseOf, request, turns } from '../../support/flow.js';

type Options = Parameters<typeof circuitBreaker>[0];

function setUp(options: Options, endpoints = ['a']) {
  const clock = new ManualClock();
  const pool = new EndpointPool();
  for (const id of endpoints) pool.add(id);
  const breaker = circuitBreaker(options);
  const saturationDetector = maxOf(concurrencyDetector({ maxConcurrency: 8 }), breaker);
  const flow = new FlowController({ clock, pool, saturationDetector });
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
  expect(flow.explain(1)?.text).toContain('a server whose circuit is closed');
});

it('lists every wrong option', () => {
  const wrong = () => circuitBreaker({ window: 0, failureRatio: 2, probes: 0 });
  expect(wrong).toThrow(FlowConfigError);
  for (const path of ['window', 'failureRatio', 'probes']) expect(wrong).toThrow(`${path}: expected`);
});
