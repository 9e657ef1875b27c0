import { describe, expect, it } from 'vitest';
import { outputPredictor, shortestFirst } from '../../../src/index.js';
import type { ShortestFirstOptions } from '../../../src/types/index.js';
import { Random } from '../../property/random.js';
import { fakeItem } from '../../support/fake-item.js';
import { dial, key, makeFlow } from '../../support/flow.js';

/** The sizes of requests in the order in which they go; each comes `everyMs` after the one before. */
function orderOf(options: ShortestFirstOptions, tokens: readonly number[], everyMs = 0): number[] {
  const detector = dial(1, true);
  const { flow, clock } = makeFlow({
    saturationDetector: detector,
    bands: [{ priority: 0, ordering: shortestFirst(options) }],
    defaultRequestTtl: 0,
  });
  const order: number[] = [];
  flow.on('dispatched', ({ item }) => order.push(item.tokens));
  for (const size of tokens) {
    void flow.enqueue({ byteSize: 1, tokens: size }, key('a'));
    clock.advance(everyMs);
  }
  detector.turnTo(0);
  expect(flow.stats().pluginErrors).toBe(0);
  return order;
}

describe('shortestFirst', () => {
  it('lets the shortest go first, equal ones by arrival', () => {
    expect(orderOf({}, [30_000, 10, 5000, 10, 1])).toEqual([1, 10, 10, 5000, 30_000]);
  });

  it('lets a long one go before the short ones that come more than `aging` times its work later', () => {
    // 10,000 tokens are 2 s of work: worth 20 s of waiting.
    expect(orderOf({}, [10_000, 1, 1, 1], 9000)).toEqual([1, 1, 10_000, 1]);
    expect(orderOf({ aging: 1 }, [10_000, 1, 1, 1], 9000)).toEqual([10_000, 1, 1, 1]);
    expect(orderOf({ aging: 1000 }, [10_000, 1, 1, 1], 9000)).toEqual([1, 1, 1, 10_000]);
  });

  it('lets nobody pass who comes later than the bound says', () => {
    const random = new Random(1);
    const { compare } = shortestFirst({ aging: 3 });
    let overtakings = 0;
    for (let i = 0; i < 5000; i++) {
      const first = fakeItem({ sequence: 0, enqueuedAtMs: random.int(10_000), tokens: random.int(50_000) });
      const later = fakeItem({
        sequence: 1,
        enqueuedAtMs: first.enqueuedAtMs + random.int(60_000),
        tokens: random.int(50_000),
      });
      if (compare(later, first) >= 0) continue;
      overtakings++;
      const boundMs = 3 * ((first.tokens - later.tokens) / 5000) * 1000;
      expect(later.enqueuedAtMs - first.enqueuedAtMs).toBeLessThan(boundMs + 1e-6);
    }
    expect(overtakings).toBeGreaterThan(100);
  });

  it('counts answers where it can predict them', () => {
    const predictor = outputPredictor();
    for (let i = 0; i < 5; i++) {
      predictor.observe('chatty', '', 4000);
      predictor.observe('terse', '', 5);
    }
    const { compare } = shortestFirst({ predictor });
    const chatty = fakeItem({ fairnessId: 'chatty', tokens: 10, sequence: 0 });
    const terse = fakeItem({ fairnessId: 'terse', tokens: 20_000, sequence: 1 });
    expect(compare(terse, chatty)).toBeLessThan(0);
    for (let i = 0; i < 50; i++) predictor.observe('terse', '', 100_000);
    // What waits keeps its place, whatever is learnt meanwhile.
    expect(compare(terse, chatty)).toBeLessThan(0);
    const next = fakeItem({ fairnessId: 'terse', tokens: 20_000, sequence: 2 });
    expect(compare(next, chatty)).toBeGreaterThan(0);
  });

  it('asks for the answers of the model, where it is told', () => {
    const predictor = outputPredictor();
    for (let i = 0; i < 5; i++) predictor.observe('a', 'thinks', 4000);
    const modelOf = ({ byteSize }: { byteSize: number }): string | undefined => (byteSize > 1 ? 'thinks' : undefined);
    const { compare } = shortestFirst({ predictor, modelOf });
    const long = fakeItem({ fairnessId: 'a', tokens: 10, byteSize: 2, sequence: 0 });
    const short = fakeItem({ fairnessId: 'a', tokens: 5000, byteSize: 1, sequence: 1 });
    expect(compare(short, long)).toBeLessThan(0);
    expect(shortestFirst({ predictor }).compare(short, long)).toBeGreaterThan(0);
  });

  it.each([{ secondsOf: () => 1e300, weightOf: () => 1e-300 }, { aging: 1e-309 }])(
    'lets what is too long to tell apart go by arrival (%#)',
    (options) => {
      const { compare } = shortestFirst(options);
      expect(
        compare(fakeItem({ sequence: 0, enqueuedAtMs: 5000 }), fakeItem({ sequence: 1, enqueuedAtMs: 6000 })),
      ).toBe(0);
    },
  );

  it('divides work by weight', () => {
    const { compare } = shortestFirst({ weightOf: ({ byteSize }) => byteSize });
    const light = fakeItem({ tokens: 1000, byteSize: 1, sequence: 0 });
    const heavy = fakeItem({ tokens: 3000, byteSize: 4, sequence: 1 });
    expect(compare(heavy, light)).toBeLessThan(0);
  });

  it.each([
    [{ secondsOf: () => Number.NaN }, 'secondsOf'],
    [{ secondsOf: () => 0 }, 'secondsOf'],
    [{ weightOf: () => -1 }, 'weightOf'],
    [{ predictor: outputPredictor(), modelOf: () => 7 as never }, 'modelOf'],
    [{ predictor: { predict: () => Number.POSITIVE_INFINITY, observe: () => {} } }, 'predictor.predict'],
  ])('tells of a function that fails once for each request, and goes by the prompt (%#)', (options, name) => {
    const { compare } = shortestFirst(options);
    const long = fakeItem({ tokens: 2000, sequence: 0 });
    const short = fakeItem({ tokens: 1000, sequence: 1 });
    expect(() => compare(long, short)).toThrowError(name);
    expect(() => compare(long, short)).toThrowError(name);
    expect(compare(long, short)).toBeGreaterThan(0);
  });

  it.each([
    [{ aging: 0 }, 'aging'],
    [{ aging: Number.NaN }, 'aging'],
    [{ promptTokensPerSecond: -1 }, 'promptTokensPerSecond'],
    [{ completionTokensPerSecond: Number.POSITIVE_INFINITY }, 'completionTokensPerSecond'],
    [{ secondsOf: 1 as never }, 'secondsOf'],
    [{ predictor: {} as never }, 'predictor'],
    [{ modelOf: 'gpt' as never }, 'modelOf'],
  ])('refuses %j', (options, path) => {
    expect(() => shortestFirst(options)).toThrowError(path);
  });
});
