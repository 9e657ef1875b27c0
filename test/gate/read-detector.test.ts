import { describe, expect, it } from 'vitest';
import { readDetector } from '../../src/gate/read-detector.js';
import { concurrencyDetector, FlowConfigError, type PoolView, vegas } from '../../src/index.js';

type Reported = readonly [expected: string, path: readonly PropertyKey[], got: string | undefined];

/** What is read from `candidate`, and what is reported of it. */
function read(candidate: unknown): { detector: ReturnType<typeof readDetector>; reports: Reported[] } {
  const reports: Reported[] = [];
  const detector = readDetector(candidate, (expected, path = [], got) => void reports.push([expected, path, got]));
  return { detector, reports };
}

const factoryReport = [
  'a saturation detector, such as concurrencyDetector({ maxConcurrency: 15 }), or a function that returns the saturation',
  [],
  'a function that makes detectors, and has to be called',
];

describe('a detector that is a function', () => {
  it('is asked as it is, after one call with an empty pool that nobody can change', () => {
    const pools: PoolView[] = [];
    const { detector, reports } = read((pool: PoolView) => {
      pools.push(pool);
      return 0.25;
    });
    expect([detector?.type, reports]).toEqual(['function', []]);
    expect(pools).toEqual([{ endpoints: [], inFlightRequests: 0, inFlightTokens: 0 }]);
    expect([Object.isFrozen(pools[0]), Object.isFrozen(pools[0]?.endpoints)]).toEqual([true, true]);
    const pool = { endpoints: [], inFlightRequests: 1, inFlightTokens: 2 };
    expect(detector?.saturation(pool, 5)).toBe(0.25);
    expect(pools[1]).toBe(pool);
  });

  it.each<[string, () => unknown]>([
    ['returns nothing', () => undefined],
    ['returns null', () => null],
    ['returns text', () => 'much'],
    [
      'cannot take an empty pool',
      () => {
        throw new TypeError('no endpoint');
      },
    ],
  ])('is no mistake where it %s for an empty pool', (_, saturation) => {
    expect(read(saturation).reports).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['a factory that returns a detector', concurrencyDetector],
    ['a factory that rejects the pool as its options', vegas],
    ['a function that returns an object', () => ({})],
    [
      'a function that reports wrong options',
      () => {
        throw new FlowConfigError('x', []);
      },
    ],
  ])('is taken for a factory that has to be called: %s', (_, factory) => {
    expect(read(factory).reports).toEqual([factoryReport]);
  });

  it('is never called where it is async', () => {
    let calls = 0;
    const { reports } = read(async () => {
      calls++;
      return 0;
    });
    expect(reports).toEqual([['a function that returns the saturation at once, a number', [], 'an async function']]);
    expect(calls).toBe(0);
  });

  it('cannot return a promise, whose rejection is nobody else’s business', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const { reports } = read(() => Promise.reject(new Error('late')));
    await new Promise(setImmediate);
    process.off('unhandledRejection', note);
    expect(reports).toEqual([
      ['a function that returns the saturation at once, a number', [], 'a function that returns a promise'],
    ]);
    expect(unhandled).toEqual([]);
  });
});

describe('a detector that is an object', () => {
  it('is that object', () => {
    const detector = concurrencyDetector();
    expect(read(detector)).toEqual({ detector, reports: [] });
  });

  it('has a reading, and may have every other hook', () => {
    expect(read({ type: 'x' }).reports.map(([, path]) => path)).toEqual([['saturation']]);
    const hooks = [
      ...['filter', 'isBlindTo', 'seatsOf', 'subscribe'],
      ...['dispatched', 'answered', 'reported', 'released', 'sessionEnded'],
    ];
    const wrong = Object.fromEntries(hooks.map((hook) => [hook, 'no method']));
    const { detector, reports } = read({ type: 'x', saturation: () => 0, ...wrong });
    expect(detector).toBeUndefined();
    expect(reports.map(([, path]) => path)).toEqual(hooks.map((hook) => [hook]));
  });

  it('is no constraint, and the message says where that belongs', () => {
    expect(read({ type: 'mine', withRoomFor: () => [] }).reports).toEqual([
      [
        `a saturation detector; constraints go into the controller's option "constraints: [...]"`,
        [],
        'the constraint mine',
      ],
    ]);
    const both = { type: 'both', saturation: () => 0, withRoomFor: () => [] };
    expect(read(both)).toEqual({ detector: both, reports: [] });
  });

  it('is nothing else', () => {
    expect(read(7).reports).toEqual([[factoryReport[0], [], undefined]]);
  });
});
