import { describe, expect, it } from 'vitest';
import { concurrencyDetector, EndpointPool, FlowController, roundRobin } from '../src/index.js';
import { ManualClock } from '../src/testing/index.js';
import { dial, dropOf, key, leaseOf, makeFlow, record, request, runNow, turns } from './support/flow.js';

describe('suspects', () => {
  it('zombie band', async () => {
    const { flow, clock } = makeFlow({ bandIdleTimeout: '10m' });
    runNow(flow, { priority: 7 }).release();
    clock.advance(11 * 60_000);
    const d = flow;
    void d;
    flow.tryEnqueue(request, key('x', 7));
    clock.advance(11 * 60_000);
    void flow.enqueue(request, key('x', 7));
    const s = flow.snapshot();
    expect(s.bands.reduce((n, b) => n + b.waiting, 0)).toBe(s.stats.waiting);
    await flow.close();
  });
  it('ttl lanes after regime flips', async () => {
    const pool = new EndpointPool();
    const { flow, clock } = makeFlow({ pool, defaultRequestTtl: '60s', noEndpointRequestTtl: '30s' });
    const a = flow.enqueue(request, key('a'));
    const b = flow.enqueue({ ...request, ttlMs: 2000 }, key('b'));
    const c = flow.enqueue(request, key('c'));
    const s = dial(2);
    flow.reconfigure({ saturationDetector: s });
    pool.add('e');
    clock.advance(2000);
    expect(flow.stats().waiting).toBe(2);
    clock.advance(58_000);
    expect(flow.stats().waiting).toBe(0);
    for (const o of [a, b, c]) expect(dropOf(await o).type).toBe('EvictedTTL');
  });
  it('null detector', () => {
    const { flow } = makeFlow({ saturationDetector: (() => null) as never });
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
  });
  it('announces at once', () => {
    let stopped = 0;
    const errors: unknown[] = [];
    const flow = new FlowController({ clock: new ManualClock(), saturationDetector: { type: 'x', saturation: () => 0, subscribe: (l) => { l(); return () => { stopped++; }; } } });
    expect(flow.stats().pluginErrors).toBe(0);
    void flow.close();
    expect(stopped).toBe(1);
    void errors;
  });
  it('picker empties pool', async () => {
    const pool = new EndpointPool();
    pool.add('a'); pool.add('b');
    const { flow } = makeFlow({ pool, endpointPicker: { type: 'p', pick: () => { pool.remove('a'); pool.remove('b'); return undefined; } } });
    const p = flow.enqueue(request, key());
    await flow.close();
    expect((await p).type).toBe('EvictedOther');
  });
  it('isGateClosed after tryEnqueue', () => {
    const { flow } = makeFlow({ saturationDetector: dial(1) });
    flow.tryEnqueue(request, key());
    expect(flow.stats().isGateClosed).toBe(false);
  });
  it('abort from a hook before the signal is watched', async () => {
    const abort = new AbortController();
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness: { type: 'x', createSelector: (band) => ({ pick: () => band.firstActive, flowActivated: () => abort.abort() }) } }] });
    const held = runNow(flow);
    const p = flow.enqueue({ ...request, signal: abort.signal }, key());
    expect(flow.stats().waiting).toBe(0);
    held.release();
    expect(dropOf(await p).type).toBe('EvictedContextCancelled');
  });
  it('reconfigure keeps the latch', async () => {
    const d = dial(1);
    const { flow } = makeFlow({ saturationDetector: d, gate: { closeAt: 1, openAt: 0.5 } });
    void flow.enqueue(request, key());
    d.value = 0.7;
    flow.reconfigure({ limits: { maxRequests: 5 } });
    expect(flow.stats().waiting).toBe(1);
  });
  it('reconfigure after close subscribes', async () => {
    const { flow } = makeFlow();
    await flow.close();
    const d = dial(0, true);
    flow.reconfigure({ saturationDetector: d });
    expect(d.subscribers).toBe(0);
  });
  it('round robin bound', async () => {
    const { flow } = makeFlow({ bands: [{ priority: 0, fairness: roundRobin() }], saturationDetector: concurrencyDetector({ maxConcurrency: 1 }) });
    let held = runNow(flow);
    const order: string[] = [];
    flow.on('dispatched', ({ item, lease }) => { order.push(item.fairnessId); held = lease; });
    for (const f of ['f1', 'A', 'f3', 'f4', 'f5', 'f6', 'f7', 'f8', 'f9', 'f10']) void flow.enqueue(request, key(f));
    void flow.enqueue(request, key('A'));
    void flow.enqueue(request, key('A'));
    held.release();
    for (let i = 0; i < 20; i++) void flow.enqueue(request, key(`n${i}`));
    while (flow.stats().waiting > 0) held.release();
    console.log(order.join(' '));
    await turns();
  });
  it('stats re-entrancy', async () => {
    const { flow, clock } = makeFlow({ maxBands: 4, bandIdleTimeout: '10m' });
    runNow(flow, { priority: 9 }).release();
    runNow(flow, { priority: 8 }).release();
    runNow(flow, { priority: 7 }).release();
    clock.advance(11 * 60_000);
    flow.on('bandRemoved', ({ priority }) => { if (priority === 9) { runNow(flow, {priority: 100}); void flow.tryEnqueue(request, key('b', 101)); void flow.tryEnqueue(request, key('b', 102)); } });
    flow.stats();
    expect(flow.snapshot().bands.map((b) => b.priority)).toEqual([102, 101, 100, 0]);
  });
  it('dial leases', () => { expect(leaseOf).toBeDefined(); expect(record).toBeDefined(); });
});
