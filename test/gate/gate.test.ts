import { describe, expect, it } from 'vitest';
import {
  concurrencyDetector,
  EndpointPool,
  type EndpointView,
  explainWait,
  type FlowControllerOptions,
  maxOf,
  overviewOf,
  type PoolView,
  type SaturationDetector,
  staticUsageLimit,
  type UsageLimitPolicy,
} from '../../src/index.js';
import { CountingClock } from '../support/clocks.js';
import type { JudgingDetector } from '../support/constraints.js';
import { dial, key, leaseOf, makeFlow, record, request, runNow } from '../support/flow.js';

function passes(options: Partial<FlowControllerOptions>, priority = 0): boolean {
  return makeFlow(options).flow.tryEnqueue(request, key('a', priority))?.type === 'Dispatched';
}

describe('the gate', () => {
  it.each([
    [0, true],
    [0.999, true],
    [1, false],
    [7, false],
  ])('at saturation %d is open: %s', (value, isOpen) => {
    expect(passes({ saturationDetector: dial(value) })).toBe(isOpen);
  });

  it.each([
    [0.79, 0.8, true],
    [0.8, 0.8, false],
    [1.9, 2, true],
    [2, 2, false],
  ])('at saturation %d, with closeAt %d, is open: %s', (value, closeAt, isOpen) => {
    expect(passes({ saturationDetector: dial(value), gate: { closeAt } })).toBe(isOpen);
  });

  it('takes a bare function for a detector', () => {
    const seen: [PoolView, number][] = [];
    const { flow, clock } = makeFlow({
      saturationDetector: (pool, nowMs) => {
        seen.push([pool, nowMs]);
        return 0;
      },
    });
    expect(seen).toHaveLength(1); // when it was told from a factory
    clock.advance(70);
    runNow(flow);
    expect(seen).toHaveLength(2);
    expect(seen[1]?.[1]).toBe(70);
    expect(seen[1]?.[0].endpoints).toHaveLength(1);
  });

  it('asks its detector once for every request it lets go, and once when it is closed', () => {
    const detector = dial(0, true);
    const { flow } = makeFlow({ saturationDetector: detector });
    for (let i = 0; i < 5; i++) runNow(flow);
    expect(detector.reads).toBe(5);
    detector.value = 1;
    void flow.enqueue(request, key());
    for (let i = 0; i < 4; i++) void flow.enqueue(request, key());
    detector.reads = 0;
    detector.turnTo(0);
    expect(detector.reads).toBe(5);
    expect(flow.stats().waiting).toBe(0);
  });

  it('lets a whole queue go at once when it opens wide', () => {
    const detector = dial(1, true);
    const { flow } = makeFlow({ saturationDetector: detector });
    for (let i = 0; i < 500; i++) void flow.enqueue(request, key());
    detector.turnTo(0);
    expect(flow.stats()).toMatchObject({ waiting: 0, dispatched: 500 });
  });

  it('lets exactly as many go as there is room for', () => {
    const { flow } = makeFlow({ saturationDetector: concurrencyDetector({ maxConcurrency: 7 }) });
    const leases = Array.from({ length: 7 }, () => runNow(flow));
    for (let i = 0; i < 20; i++) void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ inFlight: 7, waiting: 20 });
    for (const lease of leases.slice(0, 3)) lease.release();
    expect(flow.stats()).toMatchObject({ inFlight: 7, waiting: 17 });
  });
});

describe('hysteresis', () => {
  it('keeps the gate closed until saturation has fallen to openAt', () => {
    const detector = dial(0, true);
    const { flow } = makeFlow({ saturationDetector: detector, gate: { closeAt: 0.9, openAt: 0.6 } });
    const states = [0.89, 0.9, 0.8, 0.61, 0.6, 0.89, 1.5, 0.7, 0.1, 0.89].map((value) => {
      detector.turnTo(value);
      return flow.tryEnqueue(request, key()) === undefined ? 'closed' : 'open';
    });
    expect(states).toEqual(['open', 'closed', 'closed', 'closed', 'open', 'open', 'closed', 'closed', 'open', 'open']);
  });

  it('is off unless openAt is set', () => {
    const detector = dial(1, true);
    const { flow } = makeFlow({ saturationDetector: detector });
    void flow.enqueue(request, key());
    detector.turnTo(0.999);
    expect(flow.stats().waiting).toBe(0);
  });
});

describe('a detector that fails', () => {
  const readings: [string, () => unknown][] = [
    ['NaN', () => Number.NaN],
    ['Infinity', () => Number.POSITIVE_INFINITY],
    ['-Infinity', () => Number.NEGATIVE_INFINITY],
    ['a negative number', () => -0.1],
    ['nothing', () => undefined],
    ['null', () => null],
    ['text', () => '0.5'],
    ['a truth value', () => false],
    ['an array', () => []],
    ['a big integer', () => 0n],
    ['a promise', () => Promise.resolve(0)],
    ['an object without a text form', () => Object.create(null)],
    [
      'an exception',
      () => {
        throw new Error('broken');
      },
    ],
  ];

  it.each(readings)('with %s closes the gate, is reported, and is asked again', (_, saturation) => {
    const { flow, clock } = makeFlow({
      saturationDetector: { type: 'broken', saturation: saturation as () => number },
    });
    const errors = record(flow, 'pluginError');
    void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ waiting: 1, dispatched: 0, saturation: 1 });
    expect(errors[0]).toMatchObject({ kind: 'saturationDetector', type: 'broken', error: expect.any(Error) });
    const before = errors.length;
    clock.advance(10);
    expect(errors.length).toBe(before + 1);
  });

  it.each(readings)('with %s reads as failValue', (_, saturation) => {
    const { flow } = makeFlow({
      saturationDetector: { type: 'broken', saturation: saturation as () => number },
      gate: { failValue: 0.3 },
    });
    const errors = record(flow, 'pluginError');
    runNow(flow);
    expect(errors).toHaveLength(1);
    // Statistics ask the detector once more.
    expect(flow.stats()).toMatchObject({ saturation: 0.3, dispatched: 1, pluginErrors: 2 });
  });

  it.each([1, 1.5])('closes the gate to bands with a ceiling above 1 as well, with failValue %d', (failValue) => {
    const detector = dial(Number.NaN);
    const usageLimitPolicy: UsageLimitPolicy = {
      type: 'overcommit',
      computeLimits: (_saturation, _priorities, ceilings) => void ceilings.fill(2),
    };
    const { flow, clock } = makeFlow({ saturationDetector: detector, usageLimitPolicy, gate: { failValue } });
    void flow.enqueue(request, key());
    expect(flow.stats()).toMatchObject({ waiting: 1, saturation: failValue });
    detector.value = 1.5;
    clock.advance(10);
    expect(flow.stats()).toMatchObject({ waiting: 0, saturation: 1.5 });
  });

  it('leaves each band its ceiling where failValue is below 1', () => {
    const usageLimitPolicy = staticUsageLimit({ threshold: 0.4 });
    expect(passes({ saturationDetector: () => Number.NaN, usageLimitPolicy, gate: { failValue: 0.3 } })).toBe(true);
    expect(passes({ saturationDetector: () => Number.NaN, usageLimitPolicy, gate: { failValue: 0.5 } })).toBe(false);
  });

  it('is asked again by timer from a reading of the statistics on', () => {
    const detector = dial(1, true);
    const { flow, clock } = makeFlow({ saturationDetector: detector, defaultRequestTtl: 0 });
    flow.on('pluginError', () => {});
    const waiting = flow.enqueue(request, key());
    detector.value = Number.NaN;
    flow.stats();
    detector.value = 0;
    clock.advance(1000);
    return expect(waiting).resolves.toMatchObject({ type: 'Dispatched' });
  });

  it('is asked again by timer, although it announces its changes', () => {
    const detector = dial(Number.NaN, true);
    const { flow, clock } = makeFlow({ saturationDetector: detector });
    void flow.enqueue(request, key());
    expect(clock.pendingTimers).toBe(2);
    detector.value = 1;
    clock.advance(10);
    expect([clock.pendingTimers, flow.stats().waiting]).toEqual([1, 1]);
    detector.turnTo(0);
    expect(flow.stats().waiting).toBe(0);
  });
});

describe('a closed gate', () => {
  it('is looked at again when an arrival finds that its detector has begun to guess', async () => {
    const detector = { ...dial(1, true), isGuessing: false };
    const { flow, clock } = makeFlow({ saturationDetector: detector, gate: { recheckIntervalMs: 25 } });
    const low = flow.enqueue(request, key('low', -1));
    detector.isGuessing = true;
    const high = flow.enqueue(request, key('high', 1));
    detector.saturation = () => 0;
    clock.advance(25);
    for (const outcome of [low, high]) leaseOf(await outcome);
  });

  it('is looked at again every recheckIntervalMs, while anything waits and its detector is silent', () => {
    const detector = dial(1);
    const { flow, clock } = makeFlow({ saturationDetector: detector, gate: { recheckIntervalMs: 25 } });
    expect(clock.pendingTimers).toBe(0);
    void flow.enqueue(request, key());
    expect(clock.pendingTimers).toBe(2);
    detector.reads = 0;
    clock.advance(100);
    expect(detector.reads).toBe(4);
    detector.value = 0;
    clock.advance(24);
    expect(detector.reads).toBe(4);
    clock.advance(1);
    expect(detector.reads).toBe(5);
    expect(clock.pendingTimers).toBe(0);
    clock.advance(10_000);
    expect(detector.reads).toBe(5);
    expect(flow.stats().waiting).toBe(0);
  });

  it('is not looked at again while its detector would announce a change', () => {
    const detector = dial(1, true);
    const clock = new CountingClock();
    const { flow } = makeFlow({ saturationDetector: detector, clock });
    void flow.enqueue(request, key());
    detector.reads = 0;
    clock.advance(50_000);
    expect([detector.reads, clock.timersSet, flow.stats().waiting]).toEqual([0, 1, 1]);
  });

  it('is not looked at again while the pool is empty, which announces its changes', () => {
    const pool = new EndpointPool();
    const detector = dial(0);
    const { flow, clock } = makeFlow({ pool, saturationDetector: detector });
    void flow.enqueue(request, key());
    expect([clock.pendingTimers, detector.reads]).toEqual([1, 0]);
    pool.add('e');
    expect(flow.stats().waiting).toBe(0);
  });

  it('loses no announcement that comes while the detector is being subscribed to', () => {
    let announce = (): void => {};
    let stopped = 0;
    let value = 1;
    const { flow, clock } = makeFlow({
      saturationDetector: {
        type: 'eager',
        saturation: () => value,
        subscribe(listener) {
          announce = listener;
          listener();
          return () => stopped++;
        },
      },
    });
    void flow.enqueue(request, key());
    expect([clock.pendingTimers, flow.stats().pluginErrors]).toEqual([1, 0]);
    value = 0;
    announce();
    expect(flow.stats().waiting).toBe(0);
    return flow.close().then(() => expect(stopped).toBe(1));
  });

  it('takes no announcement for one that comes from the reading itself', () => {
    const listeners = new Set<() => void>();
    let reads = 0;
    let value = 1;
    const { flow, clock } = makeFlow({
      saturationDetector: {
        type: 'talkative',
        saturation() {
          reads++;
          for (const listener of listeners) listener();
          return value;
        },
        subscribe(listener) {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      },
    });
    void flow.enqueue(request, key());
    expect(reads).toBeLessThan(4);
    expect(clock.pendingTimers).toBe(1);
    value = 0;
    for (const listener of listeners) listener();
    expect(flow.stats().waiting).toBe(0);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('subscribe');
      },
    ],
    ['returns nothing to stop it by', () => undefined],
  ])('is looked at again when subscribe %s', (_, subscribe) => {
    const { flow, clock } = makeFlow({
      saturationDetector: { type: 'odd', saturation: () => 1, subscribe: subscribe as never },
    });
    void flow.enqueue(request, key());
    expect(clock.pendingTimers).toBe(2);
  });

  it('closes for good even when the way to stop announcements is broken', async () => {
    const { flow } = makeFlow({
      saturationDetector: { type: 'odd', saturation: () => 0, subscribe: () => ({}) as never },
    });
    await flow.close();
    expect(flow.stats()).toMatchObject({ state: 'closed', pluginErrors: 1 });
  });
});

describe('ceilings', () => {
  const byList = (...list: unknown[]): UsageLimitPolicy => ({
    type: 'by-list',
    computeLimits(_saturation, _priorities, ceilings) {
      for (const [i, ceiling] of list.entries()) if (i < ceilings.length) ceilings[i] = ceiling as number;
    },
  });
  const bands = [{ priority: 10 }, { priority: 0 }, { priority: -10 }];

  it.each([
    ['fall with priority', [0.9, 0.5, 0.2], [0.9, 0.5, 0.2]],
    ['never rise', [0.5, 0.9, 0.2], [0.5, 0.5, 0.2]],
    ['are 1 where nothing was set', [], [1, 1, 1]],
    ['may exceed 1', [3, 2, 1], [3, 2, 1]],
    ['may close a band and those below it', [1, 0, 1], [1, 0, 0]],
    [
      'may be infinite',
      [Number.POSITIVE_INFINITY, 5, Number.NEGATIVE_INFINITY],
      [Number.POSITIVE_INFINITY, 5, Number.NEGATIVE_INFINITY],
    ],
  ])('%s', (_, given, expected) => {
    const { flow } = makeFlow({ bands, usageLimitPolicy: byList(...given), saturationDetector: dial(50, true) });
    void flow.enqueue(request, key('a', -10));
    expect(overviewOf(flow, { flows: 'all' }).bands.map(({ ceiling }) => ceiling)).toEqual(expected);
  });

  it.each([
    ['NaN', Number.NaN],
    ['text', '0.5'],
    ['nothing', undefined],
  ])('that are %s read as 1, and are reported', (_, odd) => {
    const { flow } = makeFlow({ bands, usageLimitPolicy: byList(1.5, odd, 0.5), saturationDetector: dial(50, true) });
    const errors = record(flow, 'pluginError');
    flow.tryEnqueue(request, key('a', 10));
    expect(overviewOf(flow, { flows: 'all' }).bands.map(({ ceiling }) => ceiling)).toEqual([1.5, 1, 0.5]);
    expect(errors[0]).toMatchObject({ kind: 'usageLimit', type: 'by-list' });
  });

  it.each([
    [
      'throws',
      (): void => {
        throw new Error('broken');
      },
    ],
    [
      'throws half-way',
      (_s: number, _p: readonly number[], ceilings: number[]): void => {
        ceilings[0] = 0;
        throw new Error('broken');
      },
    ],
    [
      'empties the list',
      (_s: number, _p: readonly number[], ceilings: number[]): void => {
        ceilings.length = 0;
      },
    ],
  ])('are all 1 when the policy %s', (_, computeLimits) => {
    const { flow } = makeFlow({
      bands,
      usageLimitPolicy: { type: 'broken', computeLimits },
      saturationDetector: dial(0.9, true),
    });
    leaseOf(flow.tryEnqueue(request, key('a', -10)));
    expect(overviewOf(flow, { flows: 'all' }).bands.map(({ ceiling }) => ceiling)).toEqual([1, 1, 1]);
    expect(flow.stats().pluginErrors).toBeGreaterThan(0);
  });

  it('hold back the lower bands first', () => {
    const detector = dial(0.95, true);
    const { flow } = makeFlow({ bands, usageLimitPolicy: byList(1, 0.9, 0.5), saturationDetector: detector });
    const open = (): number[] =>
      [10, 0, -10].filter((priority) => flow.tryEnqueue(request, key('a', priority)) !== undefined);
    expect(open()).toEqual([10]);
    detector.value = 0.7;
    expect(open()).toEqual([10, 0]);
    detector.value = 0.4;
    expect(open()).toEqual([10, 0, -10]);
  });

  it('are computed from the scaled saturation and the priorities, highest first', () => {
    const asked: [number, number[], number[]][] = [];
    const { flow } = makeFlow({
      bands,
      gate: { closeAt: 0.5 },
      saturationDetector: dial(0.2, true),
      usageLimitPolicy: {
        type: 'asked',
        computeLimits: (saturation, priorities, ceilings) => asked.push([saturation, [...priorities], [...ceilings]]),
      },
    });
    runNow(flow);
    expect(asked).toEqual([[0.4, [10, 0, -10], [1, 1, 1]]]);
  });

  it('rank the configured bands, those in which requests wait, and the one that is judged', () => {
    const ranked: number[][] = [];
    const { flow } = makeFlow({
      bands,
      saturationDetector: dial(1, true),
      usageLimitPolicy: { type: 'asked', computeLimits: (_, priorities) => ranked.push([...priorities]) },
    });
    flow.tryEnqueue(request, key('a', 7));
    expect(ranked.pop()).toEqual([10, 7, 0, -10]);
    flow.tryEnqueue(request, key('a', 0));
    expect(ranked.pop()).toEqual([10, 0, -10]);
    void flow.enqueue(request, key('a', 7));
    flow.tryEnqueue(request, key('a', 10));
    expect(ranked.pop()).toEqual([10, 7, 0, -10]);
  });

  it('that are constant follow the bands as they come and go', () => {
    const ofRank: UsageLimitPolicy = {
      type: 'of-rank',
      constant: true,
      computeLimits(_saturation, priorities, ceilings) {
        for (let i = 0; i < priorities.length; i++) ceilings[i] = 1 - i * 0.3;
      },
    };
    const detector = dial(0.8, true);
    const { flow, clock } = makeFlow({ saturationDetector: detector, usageLimitPolicy: ofRank });
    // Alone, priority 0 is first in rank.
    leaseOf(flow.tryEnqueue(request, key('a', 0)));
    detector.value = 1;
    void flow.enqueue({ ...request, ttlMs: 100 }, key('dynamic', 5));
    void flow.enqueue({ ...request, ttlMs: 1000 }, key('a', 0));
    detector.turnTo(0.8);
    // The dynamic band went; the default one is first again.
    expect(flow.stats()).toMatchObject({ waiting: 0, dispatched: 3 });
    detector.value = 1;
    void flow.enqueue({ ...request, ttlMs: 100 }, key('dynamic', 5));
    void flow.enqueue({ ...request, ttlMs: 1000 }, key('a', 0));
    expect(overviewOf(flow, { flows: 'all' }).bands.map(({ priority, ceiling }) => [priority, ceiling])).toEqual([
      [5, 1],
      [0, 0.7],
    ]);
    detector.value = 0.8;
    clock.advance(100);
    expect(flow.stats()).toMatchObject({ waiting: 0, dispatched: 4, outcomes: { EvictedTTL: 1 } });
  });

  it('that are constant are not computed anew for every request', () => {
    let asked = 0;
    const { flow } = makeFlow({
      saturationDetector: () => 0,
      usageLimitPolicy: { type: 'constant', constant: true, computeLimits: () => asked++ },
    });
    for (let i = 0; i < 100; i++) runNow(flow);
    expect(asked).toBe(1);
    flow.reconfigure({ bands: [{ priority: 3 }] });
    runNow(flow);
    expect(asked).toBe(2);
  });

  it('that are constant are not computed anew for the requests that wait in a band without settings', () => {
    let asked = 0;
    const detector = dial(1, true);
    const { flow } = makeFlow({
      saturationDetector: detector,
      usageLimitPolicy: { type: 'constant', constant: true, computeLimits: () => asked++ },
    });
    for (let i = 0; i < 20; i++) void flow.enqueue(request, key('a', 5));
    const before = asked;
    detector.turnTo(0);
    expect([flow.stats().waiting, asked - before <= 2]).toEqual([0, true]);
  });

  it('may follow the dispatches, of which the policy is told; its failure there is reported', () => {
    const told: number[] = [];
    const { flow } = makeFlow({
      saturationDetector: () => 0,
      usageLimitPolicy: {
        type: 'told',
        computeLimits: () => {},
        dispatched: (priority) => {
          told.push(priority);
          throw new Error('broken');
        },
      },
    });
    const errors = record(flow, 'pluginError');
    for (const priority of [0, 7, -2]) runNow(flow, { priority });
    expect(told).toEqual([0, 7, -2]);
    expect(errors).toHaveLength(3);
    expect(errors[0]).toMatchObject({ kind: 'usageLimit', type: 'told' });
  });

  it('that do not follow the dispatches are not told of them, though the detector is', () => {
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 5 }),
      usageLimitPolicy: staticUsageLimit(),
    });
    const errors = record(flow, 'pluginError');
    runNow(flow);
    expect(errors).toEqual([]);
  });

  it('that may reopen are looked at again, although the detector announces its changes', () => {
    let open = false;
    const { flow, clock } = makeFlow({
      saturationDetector: dial(0.5, true),
      usageLimitPolicy: {
        type: 'reopens',
        reopens: true,
        computeLimits: (_s, _p, ceilings) => {
          ceilings.fill(open ? 1 : 0.1);
        },
      },
    });
    void flow.enqueue(request, key());
    expect(clock.pendingTimers).toBe(2);
    open = true;
    clock.advance(10);
    expect(flow.stats().waiting).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it('above 1 overcommit the pool', () => {
    const { flow } = makeFlow({
      saturationDetector: concurrencyDetector({ maxConcurrency: 10 }),
      usageLimitPolicy: staticUsageLimit({ threshold: 1.5 }),
    });
    for (let i = 0; i < 15; i++) runNow(flow);
    expect(flow.tryEnqueue(request, key())).toBeUndefined();
  });

  it('that cannot be had are reported by what they were, and so is what a policy promised and did not keep', async () => {
    const odd: UsageLimitPolicy = {
      type: 'odd',
      computeLimits(_saturation, _priorities, ceilings) {
        ceilings[0] = Number.NaN;
        return Promise.reject(new Error('late')) as never;
      },
      dispatched: () => Promise.reject(new Error('later')) as never,
    };
    const { flow } = makeFlow({ saturationDetector: () => 0, usageLimitPolicy: odd });
    const errors = record(flow, 'pluginError');
    runNow(flow);
    await new Promise(setImmediate);
    expect(errors.map(({ kind, type }) => `${kind} ${type}`)).toEqual(Array(3).fill('usageLimit odd'));
    expect(errors.map(({ error }) => String(error)).sort()).toEqual([
      'Error: late',
      'Error: later',
      'TypeError: a ceiling must be a number; got NaN',
    ]);
  });
});

describe('a detector of a band’s own', () => {
  const [high, low] = [9, 1];

  it('judges its band alone, with its own reading', () => {
    const [shared, own] = [dial(2), dial(0)];
    const { flow } = makeFlow({
      saturationDetector: shared,
      bands: [{ priority: high }, { priority: low, saturationDetector: own }],
    });
    expect(flow.tryEnqueue(request, key('a', high))?.type).toBeUndefined();
    expect(flow.tryEnqueue(request, key('a', low))?.type).toBe('Dispatched');
    own.value = 1;
    shared.value = 0;
    expect(flow.tryEnqueue(request, key('a', low))?.type).toBeUndefined();
    expect(flow.tryEnqueue(request, key('a', high))?.type).toBe('Dispatched');
  });

  it.each(['strict', 'fifo', 'aging'] as const)(
    "lets its band go where one above is closed, unless that goes first, with bandOrder '%s'",
    (bandOrder) => {
      const [shared, own] = [dial(1, true), dial(1, true)];
      const { flow } = makeFlow({
        saturationDetector: shared,
        bands: [{ priority: high }, { priority: low, saturationDetector: own }],
        bandOrder,
      });
      for (const priority of [high, low]) void flow.enqueue(request, key('a', priority));
      own.turnTo(0);
      expect(flow.stats().waiting).toBe(bandOrder === 'strict' ? 2 : 1);
      shared.turnTo(0);
      expect(flow.stats().waiting).toBe(0);
    },
  );

  it('is that of the template for the sign of the priority', () => {
    const { flow } = makeFlow({
      saturationDetector: dial(0),
      bands: [],
      defaultBand: { saturationDetector: dial(0) },
      defaultNegativeBand: { saturationDetector: dial(1) },
    });
    expect([0, 5, -1].map((priority) => flow.tryEnqueue(request, key('a', priority))?.type)).toEqual([
      'Dispatched',
      'Dispatched',
      undefined,
    ]);
  });

  it('hears of every seat that is taken and given back, as the shared one does', () => {
    const heard: string[] = [];
    const hearing = (name: string) => ({
      type: name,
      saturation: () => 0,
      dispatched: () => void heard.push(`${name} dispatched`),
      released: () => void heard.push(`${name} released`),
    });
    const { flow } = makeFlow({
      saturationDetector: hearing('shared'),
      bands: [{ priority: low, saturationDetector: hearing('own') }],
    });
    runNow(flow, { priority: high }).release();
    expect(heard).toEqual(['shared dispatched', 'own dispatched', 'shared released', 'own released']);
  });

  it('is looked at again by the timer when it is silent, though the shared one announces', () => {
    const own = dial(1);
    const { flow, clock } = makeFlow({
      saturationDetector: dial(0, true),
      bands: [{ priority: low, saturationDetector: own }],
      gate: { recheckIntervalMs: 30 },
    });
    void flow.enqueue(request, key('a', low));
    own.value = 0;
    clock.advance(29);
    expect(flow.stats().waiting).toBe(1);
    clock.advance(1);
    expect(flow.stats().waiting).toBe(0);
  });

  it('needs no timer when it announces, too', () => {
    const own = dial(1, true);
    const { flow, clock } = makeFlow({
      saturationDetector: dial(0, true),
      bands: [{ priority: low, saturationDetector: own }],
      defaultRequestTtl: 0,
    });
    void flow.enqueue(request, key('a', low));
    const timers = clock.pendingTimers;
    own.turnTo(0);
    expect(flow.stats().waiting).toBe(0);
    const silent = makeFlow({
      saturationDetector: dial(0, true),
      bands: [{ priority: low, saturationDetector: dial(1) }],
      defaultRequestTtl: 0,
    });
    void silent.flow.enqueue(request, key('a', low));
    expect(silent.clock.pendingTimers - timers).toBe(1);
  });

  it('keeps its state and its subscription when a reconfiguration keeps it, and loses it when it goes', () => {
    const [shared, own] = [dial(0, true), dial(0, true)];
    const { flow } = makeFlow({ saturationDetector: shared, bands: [{ priority: low, saturationDetector: own }] });
    expect([shared.subscribers, own.subscribers]).toEqual([1, 1]);
    flow.reconfigure({ bands: [{ priority: low, saturationDetector: own, limits: { maxRequests: 5 } }] });
    expect([shared.subscribers, own.subscribers]).toEqual([1, 1]);
    flow.reconfigure({ bands: [{ priority: low }] });
    expect([shared.subscribers, own.subscribers]).toEqual([1, 0]);
  });

  it('says which endpoints have room for its band', () => {
    const pool = new EndpointPool();
    for (const id of ['a', 'b']) pool.add(id);
    const only = (id: string) => ({
      type: `only-${id}`,
      saturation: () => 0,
      filter: (endpoints: readonly EndpointView[]) => endpoints.filter((endpoint) => endpoint.id === id),
    });
    const { flow } = makeFlow({
      pool,
      saturationDetector: only('a'),
      headroom: 'required',
      bands: [{ priority: low, saturationDetector: only('b') }],
    });
    const endpointOf = (priority: number): string | undefined =>
      leaseOf(flow.tryEnqueue(request, key('x', priority))).endpoint?.id;
    expect([high, low, high, low].map(endpointOf)).toEqual(['a', 'b', 'a', 'b']);
  });

  it('closes its band alone when it fails, at the fail value', () => {
    const failing = {
      type: 'failing',
      saturation(): number {
        throw new Error('no reading');
      },
    };
    const { flow } = makeFlow({ saturationDetector: dial(0), bands: [{ priority: low, saturationDetector: failing }] });
    expect(flow.tryEnqueue(request, key('a', low))).toBeUndefined();
    expect(flow.tryEnqueue(request, key('a', high))?.type).toBe('Dispatched');
  });

  it.each([
    [1, undefined],
    [0.3, 'Dispatched'],
  ])('closes its band alone when it fails at the fail value %d, though its ceiling is 2: %s', (failValue, type) => {
    const saturation = (): number => Number.NaN;
    const usageLimitPolicy = staticUsageLimit({ threshold: 2 });
    const bands = [{ priority: low, saturationDetector: { type: 'failing', saturation } }];
    const { flow } = makeFlow({ saturationDetector: dial(0), bands, usageLimitPolicy, gate: { failValue } });
    expect(flow.tryEnqueue(request, key('a', low))?.type).toBe(type);
    expect(flow.tryEnqueue(request, key('a', high))?.type).toBe('Dispatched');
  });

  it('is what its band is shown with, and what its expired requests are told', async () => {
    const { flow, clock } = makeFlow({
      saturationDetector: dial(0.25, true),
      bands: [{ priority: low, saturationDetector: dial(3, true) }],
    });
    runNow(flow, { priority: high });
    const waiting = flow.enqueue({ ...request, ttlMs: 50 }, key('a', low));
    expect(overviewOf(flow).bands.map(({ priority, saturation }) => [priority, saturation])).toEqual([
      [high, 0.25],
      [low, 3],
      [0, 0.25],
    ]);
    clock.advance(50);
    const outcome = await waiting;
    expect(outcome.type === 'EvictedTTL' && outcome.explanation?.text).toContain(
      'saturation was 3.00, the ceiling 1.00',
    );
  });

  it('goes on to be reported by its kind after a reconfiguration, and so is the usage-limit policy', () => {
    const broken: UsageLimitPolicy = {
      type: 'broken',
      computeLimits: () => {
        throw new Error('broken');
      },
    };
    const { flow } = makeFlow({ saturationDetector: dial(0) });
    const errors = record(flow, 'pluginError');
    flow.reconfigure({ usageLimitPolicy: broken, bands: [{ priority: low, saturationDetector: dial(Number.NaN) }] });
    flow.tryEnqueue(request, key('a', low));
    expect(new Set(errors.map(({ kind }) => kind))).toEqual(new Set(['usageLimit', 'saturationDetector']));
  });
});

describe('a usage-limit policy that reopens', () => {
  const reopening: UsageLimitPolicy = {
    type: 'reopening',
    reopens: true,
    computeLimits: (_saturation, priorities, ceilings) =>
      void priorities.forEach((_, rank) => {
        ceilings[rank] = rank === 0 ? 1 : 0.2;
      }),
  };

  it.each([
    [0.5, 2, 'is asked again by a timer while the pool is not full'],
    [1, 1, 'is not asked while it is: the detector announces when that ends'],
  ])('at saturation %d, with %d timers, one for its end: %s', (saturation, timers) => {
    const { flow, clock } = makeFlow({
      saturationDetector: dial(saturation, true),
      usageLimitPolicy: reopening,
      bands: [{ priority: 0 }],
      defaultRequestTtl: Number.POSITIVE_INFINITY,
    });
    const before = clock.pendingTimers;
    void flow.enqueue(request, key('a', -5));
    expect(flow.stats().waiting).toBe(1);
    expect(clock.pendingTimers - before).toBe(timers);
  });
});

describe('what the gate tells of quotas', () => {
  const figure = {
    unit: 'requests',
    limit: 5,
    perMs: 1000,
    used: 1,
    reserved: 0,
    resetsInMs: 0,
    waitMs: 0,
    restsForMs: 0,
    isLearnt: false,
  } as const;
  const telling = (
    group: string,
    [unreported, ignoredReports, ignoredFigures, refusals]: readonly [number, number, number, number],
  ) => ({
    type: group,
    saturation: () => 0,
    withRoomFor: (endpoints: readonly EndpointView[]) => endpoints,
    quotas: () => ({ quotas: [{ group, ...figure }], unreported, ignoredReports, ignoredFigures, refusals }),
  });

  it('is nothing where no detector has any', () => {
    expect(makeFlow().flow.figures().quotas).toBeUndefined();
  });

  it('is what all its detectors say, added up', () => {
    const { flow } = makeFlow({
      saturationDetector: telling('shared', [1, 2, 3, 4]),
      bands: [
        { priority: 9, saturationDetector: telling('own', [10, 20, 30, 40]) },
        { priority: 1, saturationDetector: dial(0) },
      ],
    });
    const { quotas, ...counts } = flow.figures().quotas ?? { quotas: [] };
    expect(quotas.map(({ group }) => group)).toEqual(['shared', 'own']);
    expect(counts).toEqual({ unreported: 11, ignoredReports: 22, ignoredFigures: 33, refusals: 44 });
  });
});

describe('what the gate tells of sessions', () => {
  const telling = (type: string, resident: number, seen: string[] = []): JudgingDetector => ({
    type,
    saturation: () => 0,
    subscribe: () => () => {},
    withRoomFor: () => [],
    sessions(held) {
      seen.push(...held.map(({ fairnessId }) => fairnessId));
      return { resident, idle: 1, maxSessions: 20, waiting: held.length, tokens: 0, expired: 2 };
    },
  });

  it('is nothing where no detector limits any', () => {
    expect(makeFlow().flow.figures().sessions).toBeUndefined();
  });

  it('is what all its detectors say, added up; each is shown the first request of every queue that is held back', () => {
    const seen: string[] = [];
    const { flow } = makeFlow({
      saturationDetector: telling('shared', 3, seen),
      bands: [
        { priority: 9, saturationDetector: telling('own', 4) },
        { priority: 1, saturationDetector: dial(0) },
      ],
      holBlocking: 'flow',
    });
    for (const name of ['a', 'a', 'b']) void flow.enqueue(request, key(name));
    expect(flow.figures().sessions).toEqual({
      resident: 7,
      idle: 2,
      maxSessions: 40,
      waiting: 4,
      tokens: 0,
      expired: 4,
    });
    expect(seen).toEqual(['a', 'b']);
  });
});

describe('a pool of which nothing can be had', () => {
  const explained = (flow: ReturnType<typeof makeFlow>['flow']): string | undefined => explainWait(flow, 0)?.text;

  it('says that it has no servers, that none reports, or that each is marked', () => {
    const pool = new EndpointPool();
    const { flow } = makeFlow({
      pool,
      saturationDetector: { type: 'x', saturation: () => 0, isBlindTo: ({ metrics }) => metrics === undefined },
    });
    void flow.enqueue(request, key());
    expect(explained(flow)).toContain('the pool has no endpoints');
    pool.add('a');
    expect(explained(flow)).toContain('no server reports its load');
    pool.markOverloaded('a', 1000);
    expect(explained(flow)).toContain('every server is ill, draining or marked as overloaded');
    expect(flow.stats()).toMatchObject({ waiting: 1, saturation: 1 });
  });

  it('is looked at again when the first of its marks ends', () => {
    const pool = new EndpointPool();
    for (const id of ['a', 'b']) pool.add(id);
    const { flow, clock } = makeFlow({
      pool,
      saturationDetector: dial(0, true),
      defaultRequestTtl: 0,
      noEndpointRequestTtl: 0,
    });
    pool.markOverloaded('a', 500);
    pool.markOverloaded('b', 300);
    void flow.enqueue(request, key());
    clock.advance(299);
    expect(flow.stats().waiting).toBe(1);
    clock.advance(1);
    expect(flow.stats().waiting).toBe(0);
  });
});

describe('a detector that judges single requests', () => {
  const [high, low] = [9, 1];
  /** Lets requests of so many bytes pass, and says when others do. */
  const upTo = (byteSize: number, atMs?: number): JudgingDetector => ({
    type: `up to ${byteSize}`,
    saturation: () => 0,
    subscribe: () => () => {},
    withRoomFor: (endpoints, item) => (item.byteSize <= byteSize ? endpoints : []),
    ...(atMs !== undefined && {
      waitOf: (_endpoints, _item, nowMs) => ({ atMs, notBeforeMs: nowMs, missing: `less than ${byteSize}` }),
    }),
  });
  const send = (flow: ReturnType<typeof makeFlow>['flow'], byteSize: number, priority: number) =>
    flow.enqueue({ byteSize, ttlMs: 0 }, key('a', priority));

  it('is that of the band, where it has one', () => {
    const { flow } = makeFlow({
      saturationDetector: upTo(5, 1e6),
      bands: [{ priority: low, saturationDetector: upTo(50, 1e6) }],
      holBlocking: 'none',
    });
    for (const priority of [high, low]) void send(flow, 20, priority);
    expect(flow.stats()).toMatchObject({ waiting: 1, inFlight: 1 });
    void send(flow, 60, low);
    expect(explainWait(flow, 2)?.text).toContain('less than 50');
  });

  it.each<[string, JudgingDetector, number[]]>([
    ['when it said, and then after recheckIntervalMs, for that is over', upTo(5, 700), [700, 740, 780]],
    ['after recheckIntervalMs where it does not say', upTo(5), [40, 80, 120]],
    ['after recheckIntervalMs where none of several says', maxOf(concurrencyDetector(), upTo(5)), [40, 80, 120]],
  ])('is asked again %s', (_, detector, dueMs) => {
    const askedAtMs = new Set<number>();
    const saturationDetector: JudgingDetector = {
      ...detector,
      saturation: () => 0,
      withRoomFor: (endpoints, item, nowMs) => {
        askedAtMs.add(nowMs);
        return detector.withRoomFor?.(endpoints, item, nowMs) ?? endpoints;
      },
    };
    const { flow, clock } = makeFlow({ saturationDetector, gate: { recheckIntervalMs: 40 } });
    void send(flow, 20, 0);
    askedAtMs.clear();
    clock.advance(dueMs.at(-1) as number);
    expect([...askedAtMs]).toEqual(dueMs);
  });
});

it('a detector that judges single requests costs those no timer that it has room for', () => {
  const timersWith = (withRoomFor: JudgingDetector['withRoomFor']): number => {
    const judge: JudgingDetector = {
      type: 'judge',
      saturation: () => 0,
      subscribe: () => () => {},
      ...(withRoomFor && { withRoomFor }),
    };
    const saturationDetector = maxOf(concurrencyDetector({ maxConcurrency: 1 }), judge);
    const { flow, clock } = makeFlow({ saturationDetector, defaultRequestTtl: Number.POSITIVE_INFINITY });
    for (let i = 0; i < 3; i++) void flow.enqueue(request, key());
    expect(flow.stats().waiting).toBe(2);
    return clock.pendingTimers;
  };
  expect(timersWith((endpoints) => endpoints)).toBe(timersWith(undefined));
});

describe('what detectors hear of', () => {
  it.each(['dispatched', 'released', 'reported', 'answered', 'sessionEnded'] as const)(
    '%s, and of a band’s own as well',
    (hook) => {
      const heard: string[] = [];
      const hearing = (type: string): SaturationDetector => ({
        type,
        saturation: () => 0,
        [hook]: () => void heard.push(type),
      });
      const live = (options: Partial<FlowControllerOptions>): string[] => {
        const { flow } = makeFlow(options);
        const lease = runNow(flow);
        lease.report({ promptTokens: 1 });
        lease.answered({ status: 200, headers: {} });
        lease.endSession();
        lease.release();
        return heard.splice(0);
      };
      expect(live({ saturationDetector: hearing('shared') })).toEqual(['shared']);
      expect(
        live({ saturationDetector: dial(0), bands: [{ priority: 4, saturationDetector: hearing('own') }] }),
      ).toEqual(['own']);
      expect(
        live({ saturationDetector: dial(0), defaultNegativeBand: { saturationDetector: hearing('template') } }),
      ).toEqual(['template']);
    },
  );

  it('once, where several bands have the same', () => {
    const heard: string[] = [];
    const own: SaturationDetector = { type: 'own', saturation: () => 0, dispatched: () => void heard.push('own') };
    const bands = [7, 8].map((priority) => ({ priority, saturationDetector: own }));
    const { flow } = makeFlow({ saturationDetector: dial(0), bands, defaultBand: { saturationDetector: own } });
    runNow(flow, { priority: 7 });
    expect(heard.splice(0)).toEqual(['own']);
    flow.reconfigure({ saturationDetector: own });
    runNow(flow, { priority: 8 });
    expect(heard).toEqual(['own']);
  });
});
