/**
 * What an adversary may ask for, at its real size. Costs are counted, in elements looked at, comparisons and timers;
 * never in time. Single requests may pay for the rebuild of a line, so what leaves from the middle is judged by the
 * mean.
 */
import { describe, expect, it } from 'vitest';
import { FifoQueue } from '../../src/base/queues/fifo-queue.js';
import { fewTombstones } from '../../src/base/queues/item-queue.js';
import {
  concurrencyDetector,
  type FlowController,
  type FlowControllerOptions,
  type OrderingPolicy,
  roundRobin,
} from '../../src/index.js';
import { CountingClock } from '../support/clocks.js';
import { dial, key, makeFlow, request, runNow } from '../support/flow.js';
import { runProbe } from './run-probe.js';
import type { ScaleFigures } from './scale-probe.js';
import { countWork } from './work-meter.js';

const limits = { maxRequests: 2e6, maxBytes: 1e9 };
const probe = new URL('scale-probe.ts', import.meta.url);
const overflowFlows = 64;

/** Elements that a request may look at where nothing leaves from the middle of a line. */
const few = 10;
/**
 * The same on the mean where everything does: a line is rebuilt each time half of it is dead, and passes over its
 * members thrice.
 */
const rebuilt = 40;
/** Bytes per request. The smallest object, kept for each, would be more. */
const nothing = 48;

function expectNothingLeft({ stats, timers, listeners, left }: ScaleFigures): void {
  expect(stats).toMatchObject({ waiting: 0, waitingBytes: 0, inFlight: 0, pluginErrors: 0 });
  expect(stats.enqueued).toBe(stats.dispatched + stats.rejected + stats.evicted);
  expect({ timers, listeners }).toEqual({ timers: 0, listeners: 0 });
  expect(left).toBeLessThan(nothing);
}

describe('a million', () => {
  it('fairness IDs cost no more than one, and share a bounded number of flows', async () => {
    const figures = await runProbe<ScaleFigures>(probe, 'ids');
    expect(figures.mostIn).toBeLessThanOrEqual(few);
    expect(figures.flows).toBeLessThanOrEqual(10_000 + overflowFlows);
    expect(figures.waiting).toBe(500_000);
    expect(figures.stats.flows).toBeLessThanOrEqual(10_000 + overflowFlows);
    expectNothingLeft(figures);
  });

  it('waiting requests that are aborted, in any order, cost a constant each, and leave nothing behind', async () => {
    const figures = await runProbe<ScaleFigures>(probe, 'aborts');
    expect(figures.stats.outcomes.EvictedContextCancelled).toBe(1_000_000);
    expect(figures.waiting).toBe(250_000);
    expect(figures.mostIn).toBeLessThanOrEqual(few + fewTombstones);
    expect(figures.workOut).toBeLessThanOrEqual(rebuilt);
    expectNothingLeft(figures);
  });

  it('requests of one flow do not make those of a hundred thousand others dearer', async () => {
    const figures = await runProbe<ScaleFigures>(probe, 'giant');
    expect(figures.waiting).toBe(1_100_000);
    expect(figures.mostIn).toBeLessThanOrEqual(few);
    expect(figures.mostOut).toBeLessThanOrEqual(few);
    expect(figures.stats.flows).toBe(1);
    expectNothingLeft(figures);
  });
});

describe('a hundred thousand bands asked for', () => {
  const asked = 100_000;

  /** Work per request. */
  function ask(flow: FlowController, priorityOf: (index: number) => number): number {
    return (
      countWork(() => {
        for (let i = 0; i < asked; i++) void flow.enqueue(request, key('a', priorityOf(i)));
      }) / asked
    );
  }

  it.each([64, 1024])('cost what %i bands cost, while all pass through', (maxBands) => {
    const { flow } = makeFlow({ limits, maxBands, saturationDetector: () => 0 });
    expect(ask(flow, (i) => 1 + i)).toBeLessThanOrEqual(few * maxBands);
    expect(flow.stats()).toMatchObject({ dispatched: asked, bands: maxBands });
  });

  it.each([64, 1024])('cost what %i bands cost, while each keeps a request waiting', (maxBands) => {
    const { flow } = makeFlow({ limits, maxBands });
    runNow(flow);
    expect(ask(flow, (i) => (i % 2 === 0 ? 1 + i : -i))).toBeLessThanOrEqual(few * maxBands);
    expect(flow.stats()).toMatchObject({ bands: maxBands, waiting: maxBands - 1, rejected: asked - maxBands + 1 });
  });

  it.each(['strict', 'fifo', 'aging'] as const)(
    'are gone through once for each dispatch when they take turns: %s',
    (bandOrder) => {
      const maxBands = 1024;
      const { flow } = makeFlow({ limits, maxBands, bandOrder });
      let lease = runNow(flow);
      for (let i = 1; i < maxBands; i++) void flow.enqueue(request, key('a', i));
      flow.on('dispatched', (dispatched) => {
        lease = dispatched.lease;
      });
      const work = countWork(() => {
        for (let i = 1; i < maxBands; i++) lease.release();
      });
      expect(flow.stats()).toMatchObject({ dispatched: maxBands, waiting: 0 });
      expect(work / maxBands).toBeLessThanOrEqual(few * maxBands);
    },
  );
});

describe('flows at their caps', () => {
  /** Elements looked at by one release of a free flow and the dispatch that follows, beside so many capped flows. */
  function workBeside(capped: number): number {
    const { flow } = makeFlow({
      limits,
      maxFlows: 200_000,
      saturationDetector: concurrencyDetector({ maxConcurrency: capped + 1 }),
      bands: [{ priority: 0, limits, maxInFlightPerFlow: 1, fairness: roundRobin() }],
    });
    for (let i = 0; i < capped; i++) runNow(flow, { fairnessId: `t${i}` });
    for (let i = 0; i < capped; i++) void flow.enqueue(request, key(`t${i}`));
    let lease = runNow(flow, { fairnessId: 'free' });
    const rounds = 1000;
    for (let i = 0; i < rounds; i++) void flow.enqueue(request, key(`free${i}`));
    flow.on('dispatched', (dispatched) => {
      lease = dispatched.lease;
    });
    const work = countWork(() => {
      for (let i = 0; i < rounds; i++) lease.release();
    });
    expect(flow.stats()).toMatchObject({ waiting: capped, inFlight: capped + 1, dispatched: capped + 1 + rounds });
    return work / rounds;
  }

  it('cost a dispatch the same whether they are ten or a hundred thousand', () => {
    const beside10 = workBeside(10);
    expect(beside10).toBeLessThanOrEqual(2 * few);
    expect(workBeside(100_000)).toBeLessThanOrEqual(beside10);
  });
});

describe('a comparator that never decides', () => {
  const requests = 100_000;

  it('is asked O(log n) times for each request, and lets them go in the order of their arrival, aborts between them', () => {
    let comparisons = 0;
    const ordering: OrderingPolicy = {
      type: 'undecided',
      compare() {
        comparisons++;
        return 0;
      },
    };
    const { flow } = makeFlow({ limits, bands: [{ priority: 0, limits, ordering, fairness: roundRobin() }] });
    let lease = runNow(flow);
    const aborts = Array.from({ length: requests }, (_, i) => {
      const controller = i % 3 === 0 ? new AbortController() : undefined;
      void flow.enqueue({ ...request, signal: controller?.signal }, key());
      return controller;
    });
    for (const controller of aborts) controller?.abort();
    const order: number[] = [];
    flow.on('dispatched', (dispatched) => {
      lease = dispatched.lease;
      order.push(dispatched.item.sequence);
    });
    const living = flow.stats().waiting;
    for (let i = 0; i < living; i++) lease.release();
    expect(flow.stats()).toMatchObject({ waiting: 0, dispatched: living + 1 });
    expect(order).toHaveLength(requests - Math.ceil(requests / 3));
    expect(order.every((sequence, i) => i === 0 || sequence > (order[i - 1] ?? 0))).toBe(true);
    expect(comparisons).toBeGreaterThan(requests);
    expect(comparisons).toBeLessThanOrEqual(requests * 4 * Math.ceil(Math.log2(requests)));
  });
});

describe('times to live', () => {
  const requests = 30_000;
  /** At the end each stands in a heap with its neighbours. */
  const mostOut = few * Math.ceil(Math.log2(requests));

  it.each<[string, (index: number) => number | undefined]>([
    ['all different, each shorter than the last', (i) => requests - i],
    ['all different, each longer than the last', (i) => 1 + i],
    ['scattered', (i) => 1 + ((i * 7919) % requests)],
    ['a few that alternate', (i) => 1 + (i % 65) * 400],
    ['for ever, and none at all', (i) => (i % 2 === 0 ? 0 : 1e-9)],
  ])(
    '%s: each costs a constant to begin and a logarithm to end, there is one timer, and each request ends at its own',
    (_, ttlOf) => {
      const clock = new CountingClock();
      const { flow } = makeFlow({ clock, limits, maxBands: 200, defaultBand: { limits } });
      runNow(flow);
      const late: number[] = [];
      flow.on('dropped', ({ outcome }) => late.push(outcome.queuedMs));
      let mostTimers = 0;
      const workIn = countWork(() => {
        for (let i = 0; i < requests; i++) {
          void flow.enqueue({ ...request, ttlMs: ttlOf(i) }, key('a', i % 100));
          mostTimers = Math.max(mostTimers, clock.pendingTimers);
        }
      });
      expect(mostTimers).toBe(1);
      expect(clock.timersSet).toBeLessThanOrEqual(requests);
      expect(workIn / requests).toBeLessThanOrEqual(few);
      const forEver = Array.from({ length: requests }, (_, i) => ttlOf(i)).filter((ttlMs) => ttlMs === 0).length;
      const workOut = countWork(() => clock.advance(requests + 1));
      expect(workOut / requests).toBeLessThanOrEqual(mostOut);
      expect(flow.stats()).toMatchObject({ waiting: forEver, evicted: requests - forEver });
      const ttls = Array.from({ length: requests }, (_, i) => ttlOf(i) ?? 0).filter((ttlMs) => ttlMs > 0);
      expect(late).toEqual(ttls.map((ttlMs) => Math.ceil(ttlMs)).sort((a, b) => a - b));
      expect(clock.timersSet).toBeLessThanOrEqual(2 * requests);
    },
  );
});

describe('a request that is put back', () => {
  it('finds its place without a walk through the line', () => {
    const line = new FifoQueue<{ sequence: number; isWaiting: boolean }>();
    for (let sequence = 1000; sequence < 101_000; sequence++) line.push({ sequence, isWaiting: true });
    const work = countWork(() => {
      for (let sequence = 999; sequence >= 0; sequence--) line.push({ sequence, isWaiting: true });
    });
    expect(work).toBeLessThanOrEqual(few * 1000);
    expect(line.peek()?.sequence).toBe(0);
    expect(line.leading(101_000).map(({ sequence }) => sequence)).toEqual(Array.from({ length: 101_000 }, (_, i) => i));
  });
});

describe('a hundred thousand requests that may go at once', () => {
  const requests = 100_000;

  /** Opens the gate, and tells how many went in each turn of the event loop, which a timer begins, and their order. */
  function drain(options: Partial<FlowControllerOptions>, flows: number): { perTurn: number[]; order: number[] } {
    const clock = new CountingClock();
    const detector = dial(1, true);
    const bands = [{ priority: 0, limits, fairness: roundRobin() }];
    const { flow } = makeFlow({ clock, limits, saturationDetector: detector, bands, ...options });
    const order: number[] = [];
    const perTurn: number[] = [];
    let turn = 0;
    flow.on('dispatched', ({ item }) => {
      order.push(item.sequence);
      perTurn[turn] = (perTurn[turn] ?? 0) + 1;
    });
    for (let i = 0; i < requests; i++) void flow.enqueue(request, key(`f${i % flows}`));
    clock.onTimer = () => turn++;
    detector.turnTo(0);
    clock.advance(0);
    expect(clock.pendingTimers).toBe(0);
    return { perTurn, order };
  }

  it.each([
    [undefined, 1000],
    [250, 250],
  ])('go in turns of the event loop, with maxDispatchesPerTurn %s: %i in each', (maxDispatchesPerTurn, most) => {
    expect(drain({ maxDispatchesPerTurn }, 1).perTurn).toEqual(new Array(requests / most).fill(most));
  });

  it.each([1, 1000, 100_000])('keep the order in which they would go in one turn, with %i flows', (flows) => {
    const { order } = drain({}, flows);
    expect(order).toEqual(Array.from({ length: requests }, (_, i) => i));
  });
});
