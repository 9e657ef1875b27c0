import { describe, expect, it } from 'vitest';
import { outputPredictor, virtualTokenCounter } from '../../../src/index.js';
import type { CostFunction } from '../../../src/types/index.js';
import { byPrompt } from './by-cost/backlogged.js';
import { FakeBand, serveAll, treeOf, usage } from './by-cost/fake-band.js';

/** Counters by fairness ID. */
function counters(band: FakeBand): Record<string, number> {
  return Object.fromEntries([...treeOf(band).shares()].map(({ name, counter }) => [name, counter]));
}

/** Runs a request of known cost that finds nothing in its way. */
function run(band: FakeBand, fairnessId: string, cost: number): void {
  band.settle(band.pass(fairnessId, { tokens: cost }), usage(cost));
}

describe('virtualTokenCounter, lift vtc, as the paper has it', () => {
  const make = (): FakeBand => new FakeBand(virtualTokenCounter({ ...byPrompt, lift: 'vtc' }));

  it('lets a flow that joins others begin at the least of theirs', () => {
    const band = make();
    band.add('A', { tokens: 500 });
    band.add('A');
    band.serve();
    band.add('B');
    expect(counters(band)).toEqual({ A: 500, B: 500 });
  });

  it('lets a flow that finds nobody begin at the counter of the last to have left', () => {
    const band = make();
    band.add('A', { tokens: 500 });
    band.serve();
    band.add('B');
    expect(counters(band)).toEqual({ A: 500, B: 500 });
  });

  it('leaves a larger counter to a flow that returns', () => {
    const band = make();
    run(band, 'B', 700);
    band.add('A', { tokens: 0.001 });
    expect(counters(band)).toMatchObject({ B: 700 });
    band.add('B');
    expect(counters(band)).toMatchObject({ B: 700 });
  });

  it('lifts to the least of those that wait, not of those that run', () => {
    const band = make();
    band.pass('C', { tokens: 100 });
    band.add('A', { tokens: 200 });
    band.add('A');
    band.serve();
    band.add('B');
    expect(counters(band)).toEqual({ A: 300, B: 300, C: 100 });
  });
});

describe('virtualTokenCounter', () => {
  it('serves whoever received least, not whoever was served longest ago', () => {
    const band = new FakeBand(virtualTokenCounter(byPrompt));
    run(band, 'heavy', 1000);
    run(band, 'light', 10);
    for (let i = 0; i < 3; i++) {
      band.add('heavy', { tokens: 1000 });
      band.add('light', { tokens: 400 });
    }
    expect(serveAll(band)).toBe('light light light heavy heavy heavy');
  });

  it('breaks ties by arrival, and is round robin where all requests cost the same', () => {
    const band = new FakeBand(virtualTokenCounter({ cost: 'requests' }));
    for (const name of ['b', 'a', 'a', 'c', 'b', 'a']) band.add(name);
    expect(serveAll(band)).toBe('b a c a b a');
  });

  it('gives a flow of weight 3 three times as much', () => {
    const band = new FakeBand(virtualTokenCounter(byPrompt), { weights: { a: 3 } });
    for (let i = 0; i < 40; i++) for (const name of ['a', 'b']) band.add(name, { tokens: 10 });
    const first = Array.from({ length: 40 }, () => band.serve()?.flow.fairnessId);
    expect(first.filter((name) => name === 'a').length).toBe(30);
  });

  it('takes weights of requests from a function', () => {
    const weightOf = (fairnessId: string, { byteSize }: { byteSize: number }): number =>
      fairnessId === 'a' ? byteSize : 1;
    const band = new FakeBand(virtualTokenCounter({ ...byPrompt, weightOf }));
    run(band, 'b', 100);
    band.settle(band.pass('a', { tokens: 100, byteSize: 4 }), usage(100));
    expect(counters(band)).toEqual({ a: 25, b: 100 });
  });

  it('charges a prediction at dispatch, more when it is exceeded, and at the end what it was', () => {
    const band = new FakeBand(virtualTokenCounter({ expectedCompletionTokens: 50 }));
    const running = band.pass('a', { tokens: 100 });
    expect(counters(band)).toEqual({ a: 200 });
    band.report(running, { promptTokens: 110, completionTokens: 5 });
    expect(counters(band)).toEqual({ a: 200 });
    band.report(running, { promptTokens: 110, completionTokens: 60 });
    expect(counters(band)).toEqual({ a: 230 });
    band.settle(running, { promptTokens: 110, completionTokens: 60 });
    expect(counters(band)).toEqual({ a: 230 });
    band.settle(band.pass('b', { tokens: 100 }), { promptTokens: 10, completionTokens: 1 });
    expect(counters(band)).toEqual({ a: 230, b: 12 });
  });

  it('learns how long the answers of a flow are, and of each model', () => {
    const modelOf = ({ byteSize }: { byteSize: number }): string => `model ${byteSize}`;
    const band = new FakeBand(virtualTokenCounter({ modelOf, promptTokenPrice: 1e-6, expectedCompletionTokens: 8 }));
    const charged = (byteSize: number): number => {
      const before = counters(band).a ?? 0;
      const running = band.pass('a', { tokens: 0, byteSize });
      const after = counters(band).a as number;
      band.settle(running, { promptTokens: 0, completionTokens: byteSize === 1 ? 20 : 100 });
      return Math.round(after - before);
    };
    expect([charged(1), charged(2), charged(1), charged(2)]).toEqual([16, 16, 40, 200]);
  });

  it('forgets the average of no flow, whatever happened to the flow', () => {
    const predictor = outputPredictor({ window: 3, initialTokens: 10 });
    const item = { fairnessId: 'a' } as Parameters<typeof predictor.predict>[0];
    expect(predictor.predict(item, '')).toBe(10);
    predictor.observe('a', '', 100);
    expect(predictor.predict(item, '')).toBe(100);
    predictor.observe('a', '', 200);
    expect(predictor.predict(item, '')).toBe(150);
    expect(predictor.predict(item, 'other')).toBe(10);
  });

  it('does not charge prompt tokens that were cached', () => {
    const band = new FakeBand(virtualTokenCounter());
    band.settle(band.pass('a'), { promptTokens: 1000, completionTokens: 10, cachedPromptTokens: 900 });
    expect(counters(band)).toEqual({ a: 120 });
  });

  it('counts seat-seconds by the clock', () => {
    const band = new FakeBand(virtualTokenCounter({ cost: 'seat-seconds', expectedSeatSeconds: 4 }));
    const running = band.pass('a');
    expect(counters(band)).toEqual({ a: 4 });
    band.nowMs += 2500;
    band.settle(running, usage(0));
    expect(counters(band)).toEqual({ a: 2.5 });
    band.pass('a');
    expect(counters(band)).toEqual({ a: 5 });
  });

  it('takes a function of the work, such as the profiled cost of a model', () => {
    const cost: CostFunction = ({ promptTokens, completionTokens }) =>
      0.21 * promptTokens + 0.1 * completionTokens + 0.004 * promptTokens * completionTokens + 1.15;
    const band = new FakeBand(virtualTokenCounter({ cost }));
    band.settle(band.pass('a'), { promptTokens: 100, completionTokens: 100 });
    expect(counters(band).a).toBeCloseTo(21 + 10 + 40 + 1.15);
  });

  it('charges a request that waits once more for what was reported, and a count only once', () => {
    for (const [cost, first] of [
      ['tokens', 30],
      ['requests', 0],
    ] as const) {
      const band = new FakeBand(virtualTokenCounter({ cost }));
      band.add('a', { tokens: 100 });
      const running = band.serve();
      if (running === undefined) throw new Error('nothing was served');
      band.requeue(running, usage(30));
      expect(counters(band)).toEqual({ a: first });
    }
  });

  it('lets a flow that was held back keep its place, for it waited on', () => {
    const band = new FakeBand(virtualTokenCounter(byPrompt));
    for (let i = 0; i < 5; i++) for (const name of ['a', 'b']) band.add(name, { tokens: 10 });
    band.hold('a');
    for (let i = 0; i < 3; i++) band.serve();
    band.releaseHeld('a');
    expect(serveAll(band)).toBe('a a a a b a b');
  });

  it('keeps on deciding by fractions of a token when counters have grown beyond 2^40', () => {
    // Costs times a power of two are exact, so that the order must be the same unless the counters were lost count of.
    const orders = [1, 2 ** 34].map((unit) => {
      const band = new FakeBand(virtualTokenCounter(byPrompt));
      const order: string[] = [];
      for (let i = 0; i < 2000; i++) {
        for (const [index, name] of ['a', 'b', 'c'].entries())
          band.add(name, { tokens: (1 + ((i * (index + 2)) % 7)) * unit });
        const served = band.serve();
        if (served === undefined) continue;
        order.push(served.flow.fairnessId);
        band.settle(served, usage(served.item.tokens));
      }
      expect(Math.max(...Object.values(counters(band))) / unit).toBeLessThan(unit === 1 ? 1e6 : 2 ** 7);
      return order.join(' ');
    });
    expect(orders[1]).toBe(orders[0]);
  });

  it('tells what each tenant received and was owed, once it is asked', () => {
    const band = new FakeBand(virtualTokenCounter(byPrompt));
    expect(band.selector.service?.(0)?.flows).toEqual([]);
    band.settle(band.pass('a', { tokens: 30 }), usage(30));
    expect(band.selector.service?.(0)?.flows).toEqual([{ fairnessId: 'a', settled: 30, received: 30, owed: 30 }]);
  });

  it('settles nothing that another policy dispatched', () => {
    const band = new FakeBand(virtualTokenCounter());
    const other = new FakeBand(virtualTokenCounter());
    const running = other.pass('a', { tokens: 5 });
    band.settle(running, usage(1000));
    band.report(running, usage(1000));
    expect(counters(band)).toEqual({});
  });
});

describe('bad input', () => {
  it.each([
    [{ promptTokenPrice: 0 }, 'promptTokenPrice'],
    [{ completionTokenPrice: -1 }, 'completionTokenPrice'],
    [{ completionTokenPrice: Number.NaN }, 'completionTokenPrice'],
    [{ expectedCompletionTokens: Number.POSITIVE_INFINITY }, 'expectedCompletionTokens'],
    [{ expectedSeatSeconds: 0 }, 'expectedSeatSeconds'],
    [{ charge: 'never' as 'settle' }, 'charge'],
    [{ cost: 'bytes' as 'tokens' }, 'cost'],
    [{ weightOf: 2 as never }, 'weightOf'],
    [{ lift: 'up' as 'none' }, 'lift'],
    [{ prize: 1 } as never, 'prize'],
  ])('is refused at once: %j', (options, path) => {
    expect(() => virtualTokenCounter(options)).toThrowError(`virtualTokenCounter: ${path}`);
  });

  it.each([
    ['a cost that is NaN', { cost: () => Number.NaN }, 'cost must return a number'],
    ['a cost that is negative', { cost: () => -1 }, 'cost must return a number'],
    ['a cost that is infinite', { cost: () => Number.POSITIVE_INFINITY }, 'cost must return a number'],
    ['a cost that throws', { cost: () => JSON.parse('') }, 'JSON'],
    ['a weight of 0', { weightOf: () => 0 }, 'weightOf must return a number'],
    ['a weight below 1e-6', { weightOf: () => 1e-7 }, 'weightOf must return a number'],
    [
      'a prediction of 0',
      { predictor: { predict: () => 0, observe: () => {} } },
      'predictor.predict must return a number',
    ],
    ['a prediction that throws', { predictor: { predict: () => JSON.parse(''), observe: () => {} } }, 'JSON'],
    ['work that is negative', { workOf: () => ({ promptTokens: -1 }) }, 'workOf must return numbers'],
    ['a model that is a number', { modelOf: () => 1 as never }, 'modelOf must return text'],
  ])('at run time is told of, and does not stop the rest: %s', (_, options, message) => {
    const band = new FakeBand(virtualTokenCounter(options));
    for (let i = 0; i < 3; i++) for (const name of ['a', 'b']) band.add(name, { tokens: 10 });
    let faults = 0;
    const order: string[] = [];
    while (band.waiting > 0) {
      const flow = band.selector.pick(0);
      order.push(flow?.fairnessId ?? 'nobody');
      try {
        band.serve();
      } catch (error) {
        faults++;
        expect(String(error)).toContain(message);
      }
    }
    expect(faults).toBe(6);
    expect(order.join(' ')).toBe('a b a b a b');
  });
});
