import { describe, expect, it } from 'vitest';
import { overviewOf } from '../../src/index.js';
import { EventRate } from '../../src/tiers/band-traffic.js';
import { dial, dropOf, key, makeFlow, request, runNow } from '../support/flow.js';

/** A rate with its counter, sampled at each event. */
class Counted {
  count = 0;
  private readonly rate: EventRate;

  constructor(nowMs: number) {
    this.rate = new EventRate(nowMs);
  }

  record(nowMs: number): void {
    this.rate.sample(this.count, nowMs);
    this.count++;
  }

  perSecond(nowMs: number): number | undefined {
    return this.rate.perSecond(this.count, nowMs);
  }
}

function measure(perSecond: number, seconds: number): Counted {
  const rate = new Counted(0);
  for (let i = 0; i < perSecond * seconds; i++) rate.record((i * 1000) / perSecond);
  return rate;
}

describe('EventRate', () => {
  it('knows nothing before the first dispatch', () => {
    expect(new Counted(0).perSecond(5000)).toBeUndefined();
  });

  it('counts the dispatches of its first second at once', () => {
    const rate = new Counted(100);
    rate.record(200);
    rate.record(300);
    expect(rate.perSecond(300)).toBe(2);
    expect(rate.perSecond(1099)).toBe(2);
  });

  it.each([[1], [10], [250]])('settles at a steady %d per second', (perSecond) => {
    expect(measure(perSecond, 30).perSecond(30_000)).toBeCloseTo(perSecond, 5);
  });

  it('closes a window at its very end, and spreads what it counted over its length', () => {
    const rate = new EventRate(0);
    expect(rate.perSecond(10, 1000)).toBe(10);
    const slow = new EventRate(0);
    expect(slow.perSecond(10, 2000)).toBe(5);
    rate.sample(10, 2000);
    expect(rate.perSecond(10, 2000)).toBeCloseTo(7, 9);
  });

  it('begins with the first window in which something happened', () => {
    const rate = new EventRate(0);
    rate.sample(0, 1000);
    rate.sample(10, 2000);
    expect(rate.perSecond(10, 2000)).toBe(10);
  });

  it('follows a change within seconds', () => {
    const rate = measure(100, 10);
    for (let i = 0; i < 50; i++) rate.record(10_000 + i * 100);
    const now = rate.perSecond(15_000) ?? Number.NaN;
    expect(now).toBeGreaterThan(10);
    expect(now).toBeLessThan(30);
  });

  it('falls while nothing happens, without a timer, in the end to nothing', () => {
    const rate = measure(100, 10);
    const readings = [10_000, 12_000, 20_000, 60_000].map((atMs) => rate.perSecond(atMs) ?? 0);
    expect(readings).toEqual([...readings].sort((a, b) => b - a));
    expect(readings[3]).toBeLessThan(0.001);
    expect(rate.perSecond(1e9)).toBeUndefined();
  });
});

describe('retryAfterMs', () => {
  /** Two dispatches a second from band 0; then the gate closes. */
  function busy(options: Parameters<typeof makeFlow>[0] = {}): ReturnType<typeof makeFlow> {
    const detector = dial(0, true);
    const made = makeFlow({ saturationDetector: detector, ...options });
    for (let i = 0; i < 20; i++) {
      made.clock.advance(500);
      runNow(made.flow);
    }
    detector.value = 1;
    return made;
  }

  it('is absent when nothing was measured', async () => {
    const { flow } = makeFlow({ saturationDetector: dial(1, true), limits: { maxRequests: 0 } });
    expect(dropOf(await flow.enqueue(request, key())).retryAfterMs).toBeUndefined();
  });

  it('tells when the requests ahead in the band should be gone', async () => {
    const { flow } = busy({ bands: [{ priority: 0, limits: { maxRequests: 6 } }] });
    for (let i = 0; i < 6; i++) void flow.enqueue(request, key());
    const { retryAfterMs } = dropOf(await flow.enqueue(request, key()));
    expect(retryAfterMs).toBeGreaterThan(2700);
    expect(retryAfterMs).toBeLessThan(3300);
    expect(overviewOf(flow, { flows: 'all' }).bands[0]?.dispatchedPerSecond).toBeCloseTo(2, 1);
  });

  it('goes by the band of the request', async () => {
    const { flow } = busy({ limits: { maxRequests: 4 }, bands: [{ priority: 5 }] });
    for (let i = 0; i < 4; i++) void flow.enqueue(request, key());
    expect(dropOf(await flow.enqueue(request, key('a', 5))).retryAfterMs).toBeUndefined();
    expect(dropOf(await flow.enqueue(request, key('a', 0))).retryAfterMs).toBeGreaterThan(0);
  });

  it('is told with an expiry too, and is never below the time of one dispatch', async () => {
    const { flow, clock } = busy();
    const waiting = flow.enqueue({ ...request, ttlMs: 100 }, key());
    clock.advance(100);
    expect(dropOf(await waiting).retryAfterMs).toBeGreaterThan(400);
  });

  it('is absent where nobody should come back, or nobody can tell', async () => {
    const { flow } = busy();
    const abort = new AbortController();
    const cancelled = flow.enqueue({ ...request, signal: abort.signal }, key());
    abort.abort();
    const closed = flow.enqueue(request, key());
    await flow.close();
    for (const outcome of [cancelled, closed, flow.enqueue(request, key())])
      expect(dropOf(await outcome).retryAfterMs).toBeUndefined();
  });
});
