/**
 * What each request may cost, counted: clock readings, timers, questions to detectors, policies and comparators. Never
 * wall time.
 */
import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  type FlowController,
  type Lease,
  type OrderingPolicy,
  type Outcome,
  roundRobin,
} from '../../src/index.js';
import { CountingClock } from '../support/clocks.js';
import { key, leaseOf, makeFlow, request, runNow } from '../support/flow.js';

const limits = { maxRequests: 1e6, maxBytes: 1e9 };

const figureNames = ['readings', 'timers', 'saturations', 'picks'] as const;
type Figures = Record<(typeof figureNames)[number], number>;

class MeteredClock extends CountingClock {
  readings = 0;

  override now(): number {
    this.readings++;
    return super.now();
  }
}

/** A controller of which everything that it asks is counted. One request runs at a time. */
function meteredFlow(ordering?: OrderingPolicy): { flow: FlowController; count: (work: () => unknown) => Figures } {
  const clock = new MeteredClock();
  const detector = concurrencyDetector({ maxConcurrency: 1 });
  const turns = roundRobin();
  let saturations = 0;
  let picks = 0;
  const { flow } = makeFlow({
    clock,
    limits,
    saturationDetector: {
      ...detector,
      saturation(pool, nowMs) {
        saturations++;
        return detector.saturation(pool, nowMs);
      },
    },
    defaultBand: { limits },
    bands: [
      {
        priority: 0,
        limits,
        ...(ordering && { ordering }),
        fairness: {
          type: 'counted-turns',
          createSelector(band) {
            const selector = turns.createSelector(band);
            const pick = selector.pick.bind(selector);
            selector.pick = (nowMs) => {
              picks++;
              return pick(nowMs);
            };
            return selector;
          },
        },
      },
    ],
  });
  function figures(): Figures {
    return { readings: clock.readings, timers: clock.timersSet, saturations, picks };
  }
  return {
    flow,
    count(work) {
      const before = figures();
      work();
      const after = figures();
      for (const name of figureNames) after[name] -= before[name];
      return after;
    },
  };
}

function expectAtMost(most: Figures, figures: Figures): void {
  for (const name of figureNames) expect(figures[name], name).toBeLessThanOrEqual(most[name]);
}

/** Lets requests wait, those of each flow in one block. */
function lineUp(
  flow: FlowController,
  requests: number,
  flows: number,
  options: { signal?: AbortSignal } = {},
): Promise<Outcome>[] {
  const waiting: Promise<Outcome>[] = [];
  for (let i = 0; i < requests; i++)
    waiting.push(flow.enqueue({ ...request, ...options }, key(`f${Math.floor((i * flows) / requests)}`)));
  return waiting;
}

describe('a request that never waits', () => {
  it('reads the clock and the detector once, and sets no timer', () => {
    const { flow, count } = meteredFlow();
    let lease: Lease | undefined;
    expectAtMost(
      { readings: 1, timers: 0, saturations: 1, picks: 0 },
      count(() => (lease = runNow(flow))),
    );
    expectAtMost(
      { readings: 1, timers: 0, saturations: 0, picks: 0 },
      count(() => lease?.release()),
    );
    expectAtMost(
      { readings: 1, timers: 0, saturations: 1, picks: 0 },
      count(() => void flow.enqueue(request, key())),
    );
    expect(flow.stats()).toMatchObject({ dispatched: 2, inFlight: 1 });
  });

  it('costs no more after a hundred thousand others', () => {
    const { flow, count } = meteredFlow();
    for (let i = 0; i < 100_000; i++) runNow(flow, { fairnessId: `f${i}` }).release();
    expectAtMost(
      { readings: 2, timers: 0, saturations: 1, picks: 0 },
      count(() => runNow(flow).release()),
    );
  });
});

describe('requests that wait', () => {
  it('read the clock once each, share one timer, and leave a gate alone that is known to be closed', () => {
    const { flow, count } = meteredFlow();
    runNow(flow);
    expectAtMost(
      { readings: 1000, timers: 1, saturations: 2, picks: 1 },
      count(() => void lineUp(flow, 1000, 50)),
    );
    expect(flow.stats().waiting).toBe(1000);
  });

  it.each([1, 100, 100_000])('are picked once each when they go, with %i flows', async (flows) => {
    const { flow, count } = meteredFlow();
    const held = runNow(flow);
    const waiting = lineUp(flow, 100_000, flows);
    let lease = held;
    const most = { readings: 0, timers: 0, saturations: 0, picks: 0 };
    for (const turn of order(waiting.length, flows).slice(0, 200)) {
      const cost = count(() => lease.release());
      for (const name of figureNames) most[name] = Math.max(most[name], cost[name]);
      lease = leaseOf(await waiting[turn]);
    }
    expectAtMost({ readings: 1, timers: 1, saturations: 3, picks: 2 }, most);
  });

  it('cost one reading of the clock together when their signal aborts, and no pick', () => {
    const { flow, count } = meteredFlow();
    runNow(flow);
    const controller = new AbortController();
    void lineUp(flow, 10_000, 100, { signal: controller.signal });
    expectAtMost(
      { readings: 1, timers: 0, saturations: 3, picks: 0 },
      count(() => controller.abort()),
    );
    expect(flow.stats().waiting).toBe(0);
  });
});

/** Which requests of `lineUp` round robin dispatches, in order. */
function order(requests: number, flows: number): number[] {
  const perFlow = requests / flows;
  return Array.from({ length: requests }, (_, turn) => (turn % flows) * perFlow + Math.floor(turn / flows));
}

describe('an ordering that is not arrival order', () => {
  const requests = 20_000;
  /** Comparisons of a binary heap, and as many again for looking at its head. */
  const mostPerRequest = 4 * Math.ceil(Math.log2(requests));

  it.each([
    ['by tokens', (a: number, b: number) => a - b],
    ['always undecided', () => 0],
  ])('is asked O(log n) times for each request: %s', (_, order) => {
    let comparisons = 0;
    const ordering: OrderingPolicy = {
      type: 'counted',
      compare(a, b) {
        comparisons++;
        return order(a.tokens, b.tokens);
      },
    };
    const { flow } = makeFlow({ limits, bands: [{ priority: 0, limits, ordering }] });
    const held = runNow(flow);
    for (let i = 0; i < requests; i++) {
      // Scattered, by a multiplier without a common factor.
      void flow.enqueue({ ...request, tokens: (i * 7919) % requests }, key());
    }
    expect(comparisons).toBeLessThanOrEqual(requests * mostPerRequest);
    comparisons = 0;
    flow.on('dispatched', ({ lease }) => queueMicrotask(() => lease.release()));
    held.release();
    return until(() => flow.stats().waiting === 0).then(() => {
      expect(comparisons).toBeGreaterThan(0);
      expect(comparisons).toBeLessThanOrEqual(requests * mostPerRequest);
    });
  });

  it('is asked O(log n) times for each request that is cancelled', () => {
    let comparisons = 0;
    const ordering: OrderingPolicy = {
      type: 'counted',
      compare(a, b) {
        comparisons++;
        return a.tokens - b.tokens;
      },
    };
    const { flow } = makeFlow({ limits, bands: [{ priority: 0, limits, ordering }] });
    runNow(flow);
    const controllers = Array.from({ length: requests }, (_, i) => {
      const controller = new AbortController();
      void flow.enqueue({ ...request, tokens: (i * 7919) % requests, signal: controller.signal }, key());
      return controller;
    });
    comparisons = 0;
    for (const controller of controllers) controller.abort();
    expect(flow.stats().waiting).toBe(0);
    expect(comparisons).toBeLessThanOrEqual(requests * mostPerRequest);
  });
});

async function until(isTrue: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1000 && !isTrue(); turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(isTrue()).toBe(true);
}
