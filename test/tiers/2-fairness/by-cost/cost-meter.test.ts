import { describe, expect, it } from 'vitest';
import { CostMeter } from '../../../../src/tiers/2-fairness/by-cost/cost-meter.js';
import { type CostOptions, mostCost } from '../../../../src/tiers/2-fairness/by-cost/cost-options.js';
import { fakeItem } from '../../../support/fake-item.js';

const item = fakeItem({ fairnessId: 'a', tokens: 10 });

function make(options: CostOptions = {}) {
  const meter = new CostMeter(options);
  return {
    meter,
    predict: (of = item, model = '', hash = 1) => meter.predict(of, model, hash),
    /** What work that was done costs. */
    price: (promptTokens: number, completionTokens = 0, cachedPromptTokens = 0, seatMs = 0) => {
      Object.assign(meter.work, { promptTokens, completionTokens, cachedPromptTokens, seatMs });
      return meter.price(false);
    },
    fault: (): string => {
      try {
        meter.throwFault();
      } catch (error) {
        return String(error);
      }
      return 'none';
    },
  };
}

describe('a cost in tokens', () => {
  it('is 1 a prompt token that was not cached and 2 a completion token, unless prices are given', () => {
    const { price } = make();
    expect([price(10, 5), price(10, 5, 4), price(10, 0, 12)]).toEqual([20, 16, 0]);
    expect(make({ promptTokenPrice: 3, completionTokenPrice: 0.5 }).price(10, 5, 4)).toBe(20.5);
  });

  it('is 2^53 at most', () => {
    expect(make().price(mostCost, 1)).toBe(mostCost);
  });

  it('is predicted from the tokens of the request and an answer of 256 tokens, or of what is expected', () => {
    const { meter, predict } = make();
    expect(predict()).toBe(10 + 512);
    expect(meter.work).toEqual({ promptTokens: 10, cachedPromptTokens: 0, completionTokens: 256, seatMs: 0 });
    expect(make({ expectedCompletionTokens: 3 }).predict()).toBe(16);
  });

  it('is predicted by the answers before, of five at most, each model apart', () => {
    const { meter, predict } = make();
    meter.observe(item, 'm', 1, 30, 0);
    expect([predict(item, 'm'), predict(item, 'other'), predict(item, 'm', 2)]).toEqual([70, 522, 522]);
    meter.observe(item, 'm', 1, 60, 0);
    expect(predict(item, 'm')).toBe(90);
    meter.observe(item, 'm', 1, 0, 0);
    expect(predict(item, 'm')).toBe(90);
  });
});

describe('a cost in requests', () => {
  it('is 1, whatever was asked for and however long it took, and nothing for an attempt that is repeated', () => {
    const { meter, predict, price } = make({ cost: 'requests' });
    expect([predict(), price(100, 100, 0, 5000), meter.priceOfAttempt()]).toEqual([1, 1, 0]);
  });

  it('predicts no answer, and learns of none', () => {
    let calls = 0;
    const predictor = { predict: () => ++calls, observe: () => void calls++ };
    const { meter, predict } = make({ cost: 'requests', predictor });
    predict();
    meter.observe(item, '', 1, 30, 100);
    expect([calls, meter.work.completionTokens]).toEqual([0, 0]);
  });
});

describe('a cost in seat-seconds', () => {
  it('is how long the seat was held, at most 2^53', () => {
    const { price, meter } = make({ cost: 'seat-seconds' });
    expect([price(5, 5, 0, 1500), price(0, 0, 0, mostCost * 4000)]).toEqual([1.5, mostCost]);
    Object.assign(meter.work, { seatMs: 700 });
    expect(meter.priceOfAttempt()).toBe(0.7);
  });

  it('is predicted by how long seats were held before: ten seconds at first', () => {
    const { meter, predict } = make({ cost: 'seat-seconds' });
    expect(predict()).toBe(10);
    meter.observe(item, '', 1, 0, 2000);
    expect(predict()).toBe(2);
    expect(make({ cost: 'seat-seconds', expectedSeatSeconds: 4 }).predict()).toBe(4);
  });

  it('asks for no prediction of answers', () => {
    const { meter, predict } = make({ cost: 'seat-seconds' });
    predict();
    expect(meter.work.completionTokens).toBe(0);
  });
});

describe('a cost by a function', () => {
  it('is told the tokens and the time of the seat', () => {
    const { meter, predict } = make({ cost: ({ seatMs, completionTokens }) => seatMs + completionTokens });
    expect(predict()).toBe(10_256);
    meter.observe(item, '', 1, 6, 50);
    expect(predict()).toBe(56);
  });

  it('may be 0 and 2^53 for work that was done, and above 0 for work that is predicted', () => {
    for (const [cost, done] of [
      [0, 0],
      [mostCost, mostCost],
    ] as const) {
      const { price, fault } = make({ cost: () => cost });
      expect([price(7), fault()]).toEqual([done, 'none']);
    }
    const { predict, fault } = make({ cost: () => 0 });
    expect([predict(), fault()]).toEqual([522, 'RangeError: cost must return a number above 0, at most 2^53; got 0']);
  });

  it.each([[-1], [mostCost * 2], [Number.NaN], ['5']])(
    'that answers %s is replaced by the price of the tokens, at least 1 predicted',
    (cost) => {
      const { price, predict, fault } = make({
        cost: () => cost as number,
        workOf: () => ({ promptTokens: 0, completionTokens: 0 }),
      });
      expect([price(0), fault()]).toEqual([0, `RangeError: cost must return a number from 0 to 2^53; got ${cost}`]);
      expect(price(7)).toBe(7);
      fault();
      expect([predict(), fault()]).toEqual([
        1,
        `RangeError: cost must return a number above 0, at most 2^53; got ${cost}`,
      ]);
    },
  );
});

describe('what the host knows of the work', () => {
  it('takes the place of what is predicted, as far as it goes', () => {
    const told = (work: object) => {
      const { meter, predict } = make({ workOf: () => work, expectedCompletionTokens: 50 });
      return [predict(), meter.work.promptTokens, meter.work.cachedPromptTokens, meter.work.completionTokens];
    };
    expect(told({})).toEqual([110, 10, 0, 50]);
    expect(told({ promptTokens: 30, cachedPromptTokens: 20 })).toEqual([110, 30, 20, 50]);
    expect(told({ completionTokens: 7 })).toEqual([24, 10, 0, 7]);
    expect(told({ completionTokens: 0 })).toEqual([10, 10, 0, 0]);
    expect(told({ promptTokens: 0, completionTokens: mostCost })).toEqual([mostCost, 0, 0, mostCost]);
  });

  it.each([
    [{ promptTokens: -1 }],
    [{ cachedPromptTokens: '5' }],
    [{ completionTokens: Number.NaN }],
    [{ promptTokens: mostCost * 2 }],
  ])('counts for nothing when it is none: %j', (work) => {
    const { predict, fault } = make({ workOf: () => work as object });
    expect([predict(), fault()]).toEqual([
      522,
      expect.stringContaining('workOf must return numbers of tokens from 0 to 2^53; got'),
    ]);
  });

  it('that is nothing at all is a fault, and predicted; where all of a prompt was cached it costs 1', () => {
    const nothing = make({ workOf: () => ({ promptTokens: 0, completionTokens: 0 }) });
    expect([nothing.predict(), nothing.fault()]).toEqual([
      522,
      expect.stringContaining('workOf must return a prompt or an answer'),
    ]);
    const cached = make({ workOf: () => ({ promptTokens: 10, cachedPromptTokens: 10, completionTokens: 0 }) });
    expect([cached.predict(), cached.fault(), cached.price(10, 0, 10)]).toEqual([1, 'none', 0]);
    const priced = make({ workOf: () => ({ promptTokens: 0, completionTokens: 0 }), cost: () => 7 });
    expect([priced.predict(), priced.fault()]).toEqual([7, 'none']);
  });

  it('is nothing when the function throws, which is told', () => {
    const { predict, fault } = make({ workOf: () => JSON.parse('{') });
    expect([predict(), fault()]).toEqual([522, expect.stringContaining('JSON')]);
  });
});

describe('a predictor', () => {
  it('is asked with the item and its model, and told of answers', () => {
    const calls: unknown[] = [];
    const predictor = {
      predict: (...given: unknown[]) => calls.push(given) * 100,
      observe: (...given: unknown[]) => void calls.push(given),
    };
    const { meter, predict } = make({ predictor });
    expect(predict(item, 'm')).toBe(210);
    meter.observe(item, 'm', 1, 30, 100);
    meter.observe(item, 'm', 1, 0, 100);
    expect(calls).toEqual([
      [item, 'm'],
      ['a', 'm', 30],
    ]);
  });

  it.each([[0], [-1], [Number.NaN], [mostCost * 2], ['9']])(
    'that answers %s is replaced by what is expected',
    (tokens) => {
      const { predict, fault } = make({
        predictor: { predict: () => tokens as number, observe() {} },
        expectedCompletionTokens: 4,
      });
      expect([predict(), fault()]).toEqual([
        18,
        `RangeError: predictor.predict must return a number above 0, at most 2^53; got ${tokens}`,
      ]);
    },
  );

  it('may answer 2^53, and its fault in observing is told', () => {
    const predictor = { predict: () => mostCost, observe: () => JSON.parse('{') };
    const { meter, predict, fault } = make({ predictor });
    expect([predict(), fault()]).toEqual([mostCost, 'none']);
    meter.observe(item, '', 1, 5, 0);
    expect(fault()).toContain('JSON');
  });
});

describe('models and weights', () => {
  it('are none and the configured one, unless functions tell', () => {
    const { meter } = make();
    expect([meter.modelOf(item), meter.weightOf('a', item, 3)]).toEqual(['', 3]);
    const told = make({
      modelOf: ({ tokens }) => (tokens > 5 ? 'm' : undefined),
      weightOf: (id, { tokens }) => (id === 'a' ? tokens : 1),
    });
    expect([
      told.meter.modelOf(item),
      told.meter.modelOf(fakeItem({ tokens: 1 })),
      told.meter.weightOf('a', item, 3),
    ]).toEqual(['m', '', 10]);
    expect(told.fault()).toBe('none');
  });

  it.each([[0], [9e-7], [mostCost * 2], [Number.NaN], ['2']])(
    'a weight of %s is replaced by the configured one',
    (weight) => {
      const { meter, fault } = make({ weightOf: () => weight as number });
      expect([meter.weightOf('a', item, 3), fault()]).toEqual([
        3,
        `RangeError: weightOf must return a number from 0.000001 to 2^53; got ${weight}`,
      ]);
    },
  );

  it('weights may be 1e-6 and 2^53', () => {
    for (const weight of [1e-6, mostCost]) {
      const { meter, fault } = make({ weightOf: () => weight });
      expect([meter.weightOf('a', item, 3), fault()]).toEqual([weight, 'none']);
    }
  });

  it('a model that is no text is none', () => {
    const { meter, fault } = make({ modelOf: () => 5 as never });
    expect([meter.modelOf(item), fault()]).toEqual(['', 'RangeError: modelOf must return text or undefined; got 5']);
  });
});

describe('the first fault', () => {
  it('is told once, and those after it are not', () => {
    const { meter, fault } = make({ modelOf: () => 5 as never, weightOf: () => JSON.parse('{') });
    meter.modelOf(item);
    meter.weightOf('a', item, 3);
    expect([fault(), fault()]).toEqual([expect.stringContaining('modelOf'), 'none']);
    meter.weightOf('a', item, 3);
    meter.modelOf(item);
    expect([fault(), fault()]).toEqual([expect.stringContaining('JSON'), 'none']);
  });
});
