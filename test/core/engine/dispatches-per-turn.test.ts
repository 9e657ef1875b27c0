/** Much that becomes free at once does not hold up the event loop. */
import { describe, expect, it, vi } from 'vitest';
import { concurrencyDetector, FlowController, globalStrict } from '../../../src/index.js';
import { TurnClock } from '../../support/clocks.js';
import { dial, key, makeFlow, record, request, turns } from '../../support/flow.js';

describe('when much becomes free at once', () => {
  async function open(count: number, maxDispatchesPerTurn?: number) {
    const detector = dial(1, true);
    const { flow, clock } = makeFlow({
      saturationDetector: detector,
      maxDispatchesPerTurn,
      defaultBand: { fairness: globalStrict() },
    });
    const order: number[] = [];
    for (let i = 0; i < count; i++) void flow.enqueue(request, key()).then(() => order.push(i));
    detector.turnTo(0);
    return { flow, clock, order };
  }

  it('dispatch stops after a thousand requests, and goes on in the next turns in the same order', async () => {
    const { flow, clock, order } = await open(2500);
    expect(flow.stats()).toMatchObject({ dispatched: 1000, waiting: 1500 });
    clock.advance(0);
    await turns();
    expect(order).toEqual(Array.from({ length: 2500 }, (_, i) => i));
    expect(clock.pendingTimers).toBe(0);
  });

  it('newcomers do not overtake those that wait for the next turn', async () => {
    const { flow, clock, order } = await open(10, 4);
    expect(flow.tryEnqueue(request, key('b'))).toBeUndefined();
    void flow.enqueue(request, key('b')).then(() => order.push(10));
    expect(flow.stats().dispatched).toBe(4);
    clock.advance(0);
    clock.advance(0);
    await turns();
    expect(order).toEqual(Array.from({ length: 11 }, (_, i) => i));
  });

  it('those that wait for it leave when their time is up, and when nobody is left the gate holds nobody back', async () => {
    const detector = dial(1, true);
    const { flow, clock } = makeFlow({ saturationDetector: detector, maxDispatchesPerTurn: 1, defaultRequestTtl: 50 });
    const timers = vi.spyOn(clock, 'setTimeout');
    const gates: boolean[] = [];
    flow.on('gate', ({ isClosed }) => gates.push(isClosed));
    void flow.enqueue(request, key());
    const abort = new AbortController();
    void flow.enqueue({ ...request, signal: abort.signal }, key());
    const late = flow.enqueue({ ...request, ttlMs: 10 }, key());
    detector.turnTo(0);
    expect(flow.stats()).toMatchObject({ dispatched: 1, waiting: 2 });
    // The event loop is busy: the deadline comes before the next turn.
    const now = clock.now.bind(clock);
    clock.now = () => now() + 10;
    timers.mock.calls.find(([, delayMs]) => delayMs === 10)?.[0]();
    expect((await late).type).toBe('EvictedTTL');
    abort.abort();
    expect(flow.stats()).toMatchObject({ dispatched: 1, waiting: 0 });
    expect(gates).toEqual([true, false]);
  });

  it('close does not wait for the next turn', async () => {
    const { flow, clock } = await open(10, 4);
    await flow.close();
    expect(flow.stats()).toMatchObject({ dispatched: 4, evicted: 6, waiting: 0 });
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('the budget of a turn', () => {
  it('begins anew with each operation, on a clock that tells no turns', async () => {
    const { flow } = makeFlow({ maxDispatchesPerTurn: 2 });
    const told = record(flow, 'dispatched');
    for (let i = 0; i < 10; i++) void flow.enqueue(request, key());
    for (let i = 0; i < 9; i++) told[i]?.lease.release();
    expect(flow.stats()).toMatchObject({ dispatched: 10, waiting: 0 });
  });

  it('begins anew when nobody waits any more, on a clock that tells no turns', () => {
    const detector = dial(1, true);
    const { flow } = makeFlow({ saturationDetector: detector, maxDispatchesPerTurn: 1 });
    const abort = new AbortController();
    void flow.enqueue(request, key());
    void flow.enqueue({ ...request, signal: abort.signal }, key());
    detector.turnTo(0);
    abort.abort();
    detector.turnTo(1);
    void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ dispatched: 1, waiting: 1 });
    detector.turnTo(0);
    expect(flow.stats()).toMatchObject({ dispatched: 2, waiting: 0 });
  });

  it('ends with the turn, on a clock that tells of turns, and neither with what waits nor with a timer', () => {
    const detector = dial(1);
    const clock = new TurnClock();
    const { flow } = makeFlow({
      clock,
      saturationDetector: detector,
      maxDispatchesPerTurn: 2,
      gate: { recheckIntervalMs: 10 },
    });
    const waits = (count: number): void => {
      detector.value = 1;
      for (let i = 0; i < count; i++) void flow.enqueue(request, key());
      detector.value = 0;
      flow.reconfigure({});
    };
    waits(2);
    expect(flow.stats()).toMatchObject({ dispatched: 2, waiting: 0 });
    waits(5);
    expect(flow.stats()).toMatchObject({ dispatched: 2, waiting: 5 });
    clock.advance(1000);
    expect(flow.stats()).toMatchObject({ dispatched: 2, waiting: 5 });
    const perTurn = [0, 0, 0].map(() => {
      clock.endTurn();
      return flow.stats().dispatched;
    });
    expect(perTurn).toEqual([4, 6, 7]);
  });

  it('is no reason to look at the gate when a turn ends that did not spend it', () => {
    const detector = dial(1, true);
    const clock = new TurnClock();
    const { flow } = makeFlow({ clock, saturationDetector: detector });
    void flow.enqueue(request, key());
    detector.turnTo(0);
    detector.turnTo(1);
    void flow.enqueue(request, key());
    const { reads } = detector;
    expect(clock.endTurn()).toBeGreaterThan(0);
    expect(detector.reads).toBe(reads);
  });
});

describe('timers', () => {
  it('outlast a request that goes in the same turn, and are gone with the turn when nobody waits', () => {
    const detector = dial(1, true);
    const clock = new TurnClock();
    const { flow } = makeFlow({ clock, saturationDetector: detector, defaultRequestTtl: 1000 });
    for (let i = 0; i < 3; i++) {
      detector.turnTo(1);
      void flow.enqueue(request, key());
      detector.turnTo(0);
      expect(flow.stats()).toMatchObject({ waiting: 0, dispatched: i + 1 });
      expect(clock.pendingTimers).toBe(1);
    }
    clock.endTurn();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a chain of releases', () => {
  it('lets the event loop turn as well, on the real clock', async () => {
    const flow = new FlowController({
      saturationDetector: concurrencyDetector({ maxConcurrency: 1 }),
      maxDispatchesPerTurn: 100,
    });
    const order: number[] = [];
    let turnsSeen = 0;
    let isDone = false;
    const watch = () => {
      turnsSeen++;
      if (!isDone) setImmediate(watch);
    };
    setImmediate(watch);
    await Promise.all(Array.from({ length: 1000 }, (_, i) => flow.run(request, key(), async () => order.push(i))));
    isDone = true;
    expect(order).toEqual(Array.from({ length: 1000 }, (_, i) => i));
    expect(turnsSeen).toBeGreaterThanOrEqual(9);
    await flow.close();
  });
});
