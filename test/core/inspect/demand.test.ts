import { describe, expect, it } from 'vitest';
import { EndpointPool } from '../../../src/index.js';
import { dial, key, makeFlow, request, runNow } from '../../support/flow.js';

describe('figures of demand', () => {
  it('counts what waits and what runs, in requests, tokens and bytes', () => {
    const { flow } = makeFlow({ bands: [{ priority: 1 }, { priority: 0 }] });
    runNow(flow);
    void flow.enqueue({ byteSize: 10, tokens: 100 }, key('a', 1));
    void flow.enqueue({ byteSize: 20, tokens: 7 }, key('a', 0));
    void flow.enqueue({ byteSize: 30 }, key('b', 0));
    const { bands, ...demand } = flow.figures();
    expect(demand).toMatchObject({
      waitingTokens: 107,
      stats: { waiting: 3, waitingBytes: 60, inFlight: 1, saturation: 1 },
    });
    expect(bands).toMatchObject([
      { priority: 1, waiting: 1, waitingTokens: 100, waitingBytes: 10 },
      { priority: 0, waiting: 2, waitingTokens: 7, waitingBytes: 50 },
    ]);
  });

  it('forgets the tokens of what left, by whatever way', async () => {
    const { flow, clock } = makeFlow({ defaultRequestTtl: 1000 });
    const held = runNow(flow);
    const leaving = new AbortController();
    void flow.enqueue({ byteSize: 1, tokens: 5 }, key());
    void flow.enqueue({ byteSize: 1, tokens: 50, signal: leaving.signal }, key());
    void flow.enqueue({ byteSize: 1, tokens: 500 }, key());
    leaving.abort();
    expect(flow.figures().waitingTokens).toBe(505);
    held.release();
    expect(flow.figures().waitingTokens).toBe(500);
    clock.advance(1000);
    expect(flow.figures()).toMatchObject({ stats: { waiting: 0 }, waitingTokens: 0, timeToDrainMs: 0 });
  });

  it('tells how many come and how many go, rejected ones among those that come', async () => {
    const detector = dial(0, true);
    const { flow, clock } = makeFlow({ saturationDetector: detector, limits: { maxRequests: 20 } });
    for (let i = 0; i < 10; i++) runNow(flow).release();
    detector.turnTo(1);
    for (let i = 0; i < 30; i++) void flow.enqueue(request, key());
    clock.advance(1000);
    const demand = flow.figures();
    expect(demand).toMatchObject({
      stats: { waiting: 20 },
      arrivedPerSecond: 40,
      dispatchedPerSecond: 10,
      timeToDrainMs: 2000,
    });
    expect(demand.bands).toMatchObject([
      { priority: 0, arrivedPerSecond: 40, dispatchedPerSecond: 10, timeToDrainMs: 2000 },
    ]);
  });

  it('counts the request for which a band is made', () => {
    const { flow, clock } = makeFlow();
    runNow(flow, { priority: 7 });
    clock.advance(1000);
    expect(flow.figures().bands.find(({ priority }) => priority === 7)?.arrivedPerSecond).toBe(1);
  });

  it('falls to nothing when nobody comes', () => {
    const { flow, clock } = makeFlow();
    for (let i = 0; i < 100; i++) runNow(flow).release();
    clock.advance(1000);
    expect(flow.figures().arrivedPerSecond).toBe(100);
    clock.advance(60_000);
    expect(flow.figures()).toMatchObject({
      stats: { waiting: 0, inFlight: 0 },
      arrivedPerSecond: 0,
      dispatchedPerSecond: 0,
    });
  });

  it('reads saturation anew, although nothing came and nothing waits', () => {
    const detector = dial(0.9);
    const { flow } = makeFlow({ saturationDetector: detector });
    runNow(flow).release();
    detector.value = 0.1;
    expect(flow.figures().stats.saturation).toBe(0.1);
  });

  it('may be asked by the detector itself', () => {
    const seen: number[] = [];
    const { flow } = makeFlow({
      saturationDetector: () => {
        seen.push(flow.figures().stats.inFlight);
        return 0;
      },
    });
    runNow(flow);
    expect(seen[0]).toBe(0);
    expect(flow.figures().stats.saturation).toBe(0);
    expect(flow.stats().pluginErrors).toBe(0);
  });

  it('counts the endpoints of a pool, and none where there is no pool', () => {
    const pool = new EndpointPool();
    pool.add('e');
    expect(makeFlow({ pool }).flow.figures().pool).toEqual({ endpoints: 1, available: 1 });
    expect(makeFlow({ pool: new EndpointPool() }).flow.figures()).toMatchObject({
      stats: { saturation: 1 },
      pool: { endpoints: 0 },
    });
    expect(makeFlow().flow.figures().pool).toBeUndefined();
  });
});
