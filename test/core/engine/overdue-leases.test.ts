import { describe, expect, it, vi } from 'vitest';
import { EndpointPool, explainWait, FlowConfigError, FlowController, overviewOf } from '../../../src/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { dial, dropOf, key, leaseOf, makeFlow, record, request, runNow, turns } from '../../support/flow.js';

describe('the oldest lease', () => {
  it('is told with its age by stats, snapshot, overview and figures', () => {
    const pool = new EndpointPool();
    pool.add('e1');
    const { flow, clock } = makeFlow({ saturationDetector: dial(0), pool });
    expect(flow.stats().oldestLeaseMs).toBeUndefined();
    expect(overviewOf(flow, { flows: 'all' }).oldestLease).toBeUndefined();
    const first = runNow(flow, { fairnessId: 'a', priority: 2 });
    clock.advance(70_000);
    runNow(flow, { fairnessId: 'b' });
    clock.advance(30_000);
    const oldest = { fairnessId: 'a', priority: 2, endpoint: 'e1', heldMs: 100_000, isOverdue: false };
    expect(overviewOf(flow, { flows: 'all' }).oldestLease).toEqual(oldest);
    expect(overviewOf(flow).oldestLease).toEqual(oldest);
    expect(flow.figures().stats.oldestLeaseMs).toBe(100_000);
    first.release();
    expect(flow.stats().oldestLeaseMs).toBe(30_000);
  });

  it('is part of the explanation of a wait', () => {
    const { flow, clock } = makeFlow({ maxLeaseMs: 60_000, defaultRequestTtl: 0 });
    flow.on('leaseOverdue', () => {});
    runNow(flow);
    void flow.enqueue(request, key('b'));
    clock.advance(59_999);
    expect(explainWait(flow, request)).toMatchObject({ oldestLeaseMs: 59_999 });
    expect(explainWait(flow, request)?.text).not.toContain('lease');
    clock.advance(61_001);
    expect(explainWait(flow, request)?.text).toContain('a lease is held for 121.0 s, longer than maxLeaseMs');
  });
});

describe('maxLeaseMs', () => {
  it('tells of each lease that is held longer, once, and leaves it its seat', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(0), maxLeaseMs: 1000 });
    const told = record(flow, 'leaseOverdue');
    const first = runNow(flow, { fairnessId: 'a' });
    clock.advance(500);
    const second = runNow(flow, { fairnessId: 'b' });
    const third = runNow(flow, { fairnessId: 'c' });
    clock.advance(499);
    expect(told).toHaveLength(0);
    clock.advance(1);
    expect(told).toEqual([{ lease: first, heldMs: 1000, isTakenBack: false }]);
    third.release();
    clock.advance(5000);
    expect(told.map(({ lease }) => lease)).toEqual([first, second]);
    expect(flow.stats()).toMatchObject({ inFlight: 2, overdueLeases: 2 });
    expect([first.isReleased, first.signal.aborted]).toEqual([false, false]);
  });

  it('counts from the dispatch of each lease, with one timer for all', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(0), maxLeaseMs: 1000 });
    const told = record(flow, 'leaseOverdue');
    clock.advance(300);
    runNow(flow, { fairnessId: 'a' });
    clock.advance(400);
    runNow(flow, { fairnessId: 'b' });
    expect(clock.pendingTimers).toBe(1);
    clock.advance(600);
    expect(told.map(({ heldMs }) => heldMs)).toEqual([1000]);
    clock.advance(399);
    expect(told).toHaveLength(1);
    clock.advance(1);
    expect(told.map(({ heldMs }) => heldMs)).toEqual([1000, 1000]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('keeps no process alive', () => {
    let unreferenced = 0;
    class NodeClock extends ManualClock {
      override setTimeout(callback: () => void, delayMs: number): unknown {
        super.setTimeout(callback, delayMs);
        return { unref: () => unreferenced++ };
      }
    }
    runNow(makeFlow({ clock: new NodeClock(), maxLeaseMs: 1000 }).flow);
    expect(unreferenced).toBe(1);
  });

  it('sets no timer while nothing runs', () => {
    const { flow, clock } = makeFlow({ maxLeaseMs: 1000 });
    expect(clock.pendingTimers).toBe(0);
    const lease = runNow(flow);
    lease.release();
    clock.advance(1000);
    expect(clock.pendingTimers).toBe(0);
  });

  it('takes the seat back where that is asked for, and lets the next one go', async () => {
    const { flow, clock } = makeFlow({ maxLeaseMs: 1000, overdueLeases: 'release', defaultRequestTtl: 0 });
    const told = record(flow, 'leaseOverdue');
    const lost = runNow(flow);
    const next = flow.enqueue(request, key('b'));
    clock.advance(1000);
    expect(lost.isReleased).toBe(true);
    expect(lost.signal.reason).toMatchObject({
      name: 'TimeoutError',
      message: 'The lease was held longer than it may be.',
    });
    expect(told).toMatchObject([{ heldMs: 1000, isTakenBack: true }]);
    expect(leaseOf(await next).fairnessId).toBe('b');
    lost.release();
    expect(flow.stats()).toMatchObject({ inFlight: 1, released: 1, overdueLeases: 1 });
  });

  it('writes one warning while nobody listens', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const { flow, clock } = makeFlow({ saturationDetector: dial(0), maxLeaseMs: 1000 });
    runNow(flow);
    runNow(flow);
    clock.advance(1000);
    const written = warn.mock.calls.map(([text]) => String(text));
    warn.mockRestore();
    expect(written).toEqual([
      expect.stringContaining('a lease of priority 0 is held for 1000 ms, longer than maxLeaseMs'),
    ]);
  });

  it('can be set, changed and taken away while leases are held', () => {
    const { flow, clock } = makeFlow({ saturationDetector: dial(0) });
    const told = record(flow, 'leaseOverdue');
    runNow(flow);
    clock.advance(5000);
    flow.reconfigure({ maxLeaseMs: 2000 });
    expect(told).toHaveLength(1);
    runNow(flow);
    flow.reconfigure({ maxLeaseMs: undefined });
    clock.advance(10_000);
    expect([told.length, clock.pendingTimers]).toEqual([1, 0]);
  });

  it('leaves no timer behind when the controller is closed', async () => {
    const { flow, clock } = makeFlow({ maxLeaseMs: 1000 });
    runNow(flow);
    await flow.close();
    expect(clock.pendingTimers).toBe(0);
    expect(dropOf(await flow.enqueue(request, key())).reason).toBe('shutting-down');
  });

  it('is a number above 0', () => {
    expect(() => makeFlow({ maxLeaseMs: 0 })).toThrow(FlowConfigError);
    expect(() => new FlowController({ saturationDetector: dial(0), overdueLeases: 'drop' as 'warn' })).toThrow(
      /overdueLeases: expected one of "warn"/,
    );
  });
});

describe('a traced lease', () => {
  it('is a lease like any other', async () => {
    const { flow, clock } = makeFlow({ traceLeases: true, saturationDetector: dial(0) });
    const released = record(flow, 'released');
    const lease = leaseOf(await flow.enqueue({ ...request, tokens: 7 }, key('a', 3)));
    expect(lease).toMatchObject({ fairnessId: 'a', priority: 3, tokens: 7, isReleased: false });
    lease.report({ completionTokens: 4 });
    expect(lease.usage).toEqual({ promptTokens: 0, completionTokens: 4 });
    clock.advance(10);
    const { release } = lease;
    release();
    expect(lease.isReleased).toBe(true);
    expect(released).toMatchObject([{ heldMs: 10 }]);
    expect(flow.stats().inFlight).toBe(0);
    lease[Symbol.dispose]();
    await expect(lease.requeue()).rejects.toThrow(FlowConfigError);
    await turns();
  });
});
